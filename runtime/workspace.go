package runtime

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/agent-on-demand/aod/internal/safefs"
)

// Workdir is the directory of this host that the sandbox has as Workspace.
type Workdir struct{ dir string }

// MakeProject makes the directory over which Kept, or a spec's Project, is bound.
func (w Workdir) MakeProject() error { return w.MakeDir(projectName) }

// MakeTempDir makes TempDir.
func (w Workdir) MakeTempDir() error { return w.MakeDir(tempDir) }

// MakeDir makes a directory below Workspace, which the program may fill. No program runs yet.
func (w Workdir) MakeDir(name string) error {
	return w.with(func(root *os.Root) error { return makeDirs(root, name) })
}

// WriteFile writes a file below Workspace, which the program may change. No program runs yet.
func (w Workdir) WriteFile(name string, text []byte) error {
	return w.with(func(root *os.Root) error {
		if err := makeDirs(root, path.Dir(name)); err != nil {
			return err
		}
		return errors.Join(root.WriteFile(name, text, 0o600), root.Chmod(name, 0o666))
	})
}

func (w Workdir) with(do func(*os.Root) error) error {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return unwritable(err)
	}
	defer func() { _ = root.Close() }() // what was written was closed
	return unwritable(do(root))
}

// makeDirs makes a directory and those above it, for everybody, whatever the umask is.
func makeDirs(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	if err := makeDirs(root, path.Dir(name)); err != nil {
		return err
	}
	if err := root.Mkdir(name, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return root.Chmod(name, 0o777)
}

// OpenFile opens a file that the program left below Workspace. Links lead nowhere; anything but
// a regular file is a *safefs.Irregular.
func (w Workdir) OpenFile(name string) (*os.File, error) {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return nil, fmt.Errorf("open file of the workspace: %w", err)
	}
	defer func() { _ = root.Close() }() // read only
	f, _, err := safefs.OpenRegular(root, name)
	return f, err
}
