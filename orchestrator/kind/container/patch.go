package container

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// patch is what an image lacks of the newest state of its unit.
type patch struct {
	context *capsule.Context
	target  string          // where the image has the files
	changed map[string]bool // by name in the context
}

// place copies the files to the attempt's directory, and returns their mounts. They are a copy
// since a mounted file shows what an editor makes of it meanwhile.
func (p *patch) place(dir string) ([]runtime.Mount, error) {
	if p == nil || len(p.changed) == 0 {
		return nil, nil
	}
	dir = filepath.Join(dir, "patch")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, run.StorageFault(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // holds no data
	var mounts []runtime.Mount
	err = eachFile(p.context, func(header *tar.Header, content io.Reader) error {
		if !p.changed[header.Name] {
			return nil
		}
		name := strconv.Itoa(len(mounts))
		//nolint:gosec // the tar is our own, and its names are those of a directory's files
		target := path.Join(p.target, header.Name)
		mounts = append(mounts, runtime.Mount{Source: filepath.Join(dir, name), Target: target, ReadOnly: true})
		_, err := safefs.Copy(root, name, content, header.FileInfo().Mode().Perm())
		return err
	})
	var known *fault.Error
	if err != nil && !errors.As(err, &known) {
		err = run.StorageFault(err)
	}
	return mounts, err
}
