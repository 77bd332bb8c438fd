package container

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// trialStdin is the stdin of the unit of a trial.
type trialStdin struct {
	size int64
	open *os.File // the other end of a pipe that stays open
}

func (s trialStdin) close() error {
	if s.open == nil {
		return nil
	}
	return s.open.Close()
}

const stdinName = "stdin"

func (c *Containers) placeStdin(spec *runtime.Spec, layout runtime.Layout, trial Trial) (in trialStdin, err error) {
	root, err := layout.InputRoot()
	if err != nil {
		return in, run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // holds no data
	switch {
	case trial.Stdin != nil:
		spec.Stdio = stdinFrom(stdinName)
		in.size, err = spoolStdin(root, trial.Stdin)
	case trial.Open && !runtime.IsRemote(c.engine) && spec.Isolation == "":
		spec.Stdio = stdinFrom(stdinName)
		in.open, err = openPipe(layout, filepath.Join(root.Name(), stdinName))
	}
	return in, err
}

func spoolStdin(root *os.Root, from io.Reader) (int64, error) {
	file, err := root.OpenFile(stdinName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, run.StorageFault(err)
	}
	in := &run.Source{Reader: from}
	size, err := io.Copy(file, in)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if in.Err != nil {
		return 0, fault.Wrap(fault.Input, in.Err, "the unit's input can't be read")
	}
	return size, run.StorageFault(err)
}

// openPipe makes a pipe that stays open and empty until the returned end is closed.
func openPipe(layout runtime.Layout, name string) (*os.File, error) {
	if err := layout.MakePipe(stdinName); err != nil {
		return nil, err
	}
	pipe, err := os.OpenFile(name, os.O_RDWR, 0) // which doesn't wait for a reader
	return pipe, run.StorageFault(err)
}
