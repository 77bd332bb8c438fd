package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	stdinName = "stdin"
	tempDir   = ".tmp"

	projectName = "project"

	// StdinFile is the path in the sandbox of what WriteStdin wrote.
	StdinFile = aodDir + "/" + stdinName
	// Workspace is the directory of the sandbox that its program may fill, and whose files it
	// may execute. The run's end removes it.
	Workspace = workspaceDir
	// ProjectDir is where the sandbox has the project that its program works on.
	ProjectDir = workspaceDir + "/" + projectName
	// TempDir is a directory in it for temporary files that are executed: /tmp has none of those.
	TempDir = workspaceDir + "/" + tempDir
)

// WriteStdin writes what the program gets as its stdin, see Stdio. No program runs yet.
func (l Layout) WriteStdin(text []byte) error {
	return unwritable(safefs.Replace(l.path("aod/"+stdinName), text, safefs.ReplaceOptions{Mode: 0o644}))
}

// Project is the directory of this host that the sandbox has as ProjectDir, unless the spec has
// a Project of its own. Its content is the program's.
func (l Layout) Project() string { return cmp.Or(l.Kept, l.path("workspace/"+projectName)) }

// MakeProject makes the directory over which Kept, or a spec's Project, is bound.
func (l Layout) MakeProject() error { return l.MakeDir(projectName) }

// MakeTempDir makes TempDir.
func (l Layout) MakeTempDir() error { return l.MakeDir(tempDir) }

// MakeDir makes a directory below Workspace, which the program may fill. No program runs yet.
func (l Layout) MakeDir(name string) error {
	return l.inWorkspace(func(root *os.Root) error { return makeDirs(root, name) })
}

// WriteFile writes a file below Workspace, which the program may change. No program runs yet.
func (l Layout) WriteFile(name string, text []byte) error {
	return l.inWorkspace(func(root *os.Root) error {
		if err := makeDirs(root, path.Dir(name)); err != nil {
			return err
		}
		return errors.Join(root.WriteFile(name, text, 0o600), root.Chmod(name, 0o666))
	})
}

func (l Layout) inWorkspace(do func(*os.Root) error) error {
	root, err := os.OpenRoot(l.path("workspace"))
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
func (l Layout) OpenFile(name string) (*os.File, error) {
	root, err := os.OpenRoot(l.path("workspace"))
	if err != nil {
		return nil, fmt.Errorf("open file of the workspace: %w", err)
	}
	defer func() { _ = root.Close() }() // read only
	f, _, err := safefs.OpenRegular(root, name)
	return f, err
}
