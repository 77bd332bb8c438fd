package container

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/au/check"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// Trial is one start of an Agentic Unit that shows what the unit does. It is not checked
// against the unit's model card.
type Trial struct {
	Stdin io.Reader // read to its end before the unit starts; nil isn't an input
	// Open gives the unit a stdin that stays open and empty, instead of none. It is a pipe: a
	// remote engine and some isolation runtimes can't have one, and give none.
	Open        bool
	Args        []string      // as they follow the program's name
	Env         []string      // NAME=value
	ModelPath   string        // a file or directory of this machine, absolute, that stands at ModelPathInside
	MemoryBytes int64         // 0 is the unit's own limit
	Timeout     time.Duration // from its start; 0 is the unit's own limit
	Observe     func(run.Event)
}

// Observed is the result of a trial.
type Observed struct {
	check.Run
	Signal      int   // that ended the program; 0 is none
	MemoryLimit int64 // bytes
}

// trials start units without a run.
type trials struct {
	machine *machine
	starter *starter
	images  *imageBuilder
	lookups *lookups
}

// try starts a unit once, always without a network, and returns what it did. A failure of the
// unit isn't an error.
func (t *trials) try(ctx context.Context, u *unit.Unit, trial Trial) (seen Observed, err error) {
	if !isAgenticUnit(u) {
		return seen, fault.New(fault.Input, "%q is a capsule, no Agentic Unit", u.Name)
	}
	err = t.beside(ctx, u, trial.Observe, func(r *run.Run, spec runtime.Spec, dir string) error {
		spec.Purpose, spec.Network, spec.Watch = "trial", "none", true
		seen, err = t.tryIn(ctx, r, spec, filepath.Join(dir, "trial"), trial)
		return err
	})
	return seen, err
}

// tryIn makes a trial in a directory of its own, which it removes.
func (t *trials) tryIn(
	ctx context.Context, r *run.Run, spec runtime.Spec, dir string, trial Trial,
) (seen Observed, err error) {
	layout, err := t.starter.newLayout(dir, spec.Image, "")
	if err != nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, safefs.RemoveTree(dir)) }()
	spec, err = t.trialSpec(spec, trial)
	if err != nil {
		return seen, err
	}
	stdin, err := t.placeStdin(&spec, layout, trial)
	if err != nil {
		return seen, err
	}
	defer func() { _ = stdin.close() }() // nothing was written
	layout = layout.At(t.machine.engine, spec)
	stderr := &stderrText{limit: spec.Limits.LogBytes}
	log := runtime.NewLog(spec.Limits.LogBytes, func(line runtime.LogLine) { stderr.add(line); r.Log(line) })
	end, err := t.starter.startToEnd(ctx, spec, layout, log, cmp.Or(trial.Timeout, spec.Limits.Timeout))
	if err != nil {
		return seen, err
	}
	seen = Observed{Run: observedRun(end, spec.Limits), Signal: end.Report.Signal, MemoryLimit: spec.Limits.MemoryBytes}
	_, cut := log.Bytes()
	seen.StderrTail, seen.StderrBytes = stderr.bytes(cut)
	seen.StdinBytes = stdin.size
	seen.Stdout, err = printed(layout)
	return seen, err
}

// trialSpec converts the spec of a run to that of a trial.
func (t *trials) trialSpec(spec runtime.Spec, trial Trial) (runtime.Spec, error) {
	spec.Mode, spec.Durable = runtime.ModeOnce, false // that of a run may be a waiting sandbox's
	spec.Limits.MemoryBytes = cmp.Or(trial.MemoryBytes, spec.Limits.MemoryBytes)
	spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], trial.Env...)
	spec.Filter, spec.Stdio = &runtime.Filter{Args: trial.Args}, &runtime.Stdio{}
	if trial.ModelPath == "" {
		return spec, nil
	}
	var err error
	spec.Filter.Model, err = modelMount(t.machine.engine, trial.ModelPath)
	return spec, err
}

// beside starts a unit without a run, in a directory among those of runs. After a crash
// the next start removes the directory, since no run has it.
func (t *trials) beside(
	ctx context.Context, u *unit.Unit, observe func(run.Event), do func(*run.Run, runtime.Spec, string) error,
) (err error) {
	id, err := run.NewID()
	if err != nil {
		return err
	}
	r := &run.Run{
		ID: id, Unit: u, Limits: run.Request{Unit: u}.Limits(t.machine.opts.Limits), Record: api.Record{Unit: u.Name},
	}
	r.LedBy(noHost{}, observe)
	image, err := t.images.ensure(ctx, r)
	if err != nil {
		return err
	}
	dir := filepath.Join(t.machine.home.Runs, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return run.StorageFault(err)
	}
	defer func() {
		if !errors.Is(err, runtime.ErrLeftBehind) { // the directory tells the next sweep of the container
			err = errors.Join(err, safefs.RemoveTree(dir))
		}
	}()
	spec := t.starter.spec(u, id, image)
	spec.Limits = programOf(u).limits(r.Limits)
	return do(r, spec, dir)
}

// noHost is the host of a run that nobody asked for. It stores nothing.
type noHost struct{ run.Host }

// Save implements run.Host.
func (noHost) Save(api.Transition) error { return nil }

// Note implements run.Host.
func (noHost) Note(run.Event) {}

// Aside implements run.Host. It has no slot.
func (noHost) Aside(ctx context.Context, wait func()) error { return inPlace(ctx, wait) }

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

func (t *trials) placeStdin(spec *runtime.Spec, layout runtime.Layout, trial Trial) (in trialStdin, err error) {
	root, err := layout.InputRoot()
	if err != nil {
		return in, run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // holds no data
	switch {
	case trial.Stdin != nil:
		spec.Stdio = stdinFrom(stdinName)
		in.size, err = spoolStdin(root, trial.Stdin)
	case trial.Open && !runtime.IsRemote(t.machine.engine) && spec.Isolation == "":
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
