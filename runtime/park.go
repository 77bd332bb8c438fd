package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/agent-on-demand/aod/runtime/initbin"
)

// Ready is closed when the sandbox's init runs. It is nil for an adopted sandbox, and for a
// remote engine.
func (s *Sandbox) Ready() <-chan struct{} {
	if s.control == nil {
		return nil
	}
	return s.control.ready
}

// CPUTime returns how much processor time the container has used. See Containers.CPUTime.
func (s *Sandbox) CPUTime(ctx context.Context) (time.Duration, error) {
	return s.engine.CPUTime(ctx, s.id)
}

// Running reports whether the engine has not told of the container's end yet.
func (s *Sandbox) Running() bool { return len(s.exit) == 0 }

// Assign gives the sandbox to a run that was not known when it was started. The caller has
// moved its directories to where layout says. The run's time begins now.
func (s *Sandbox) Assign(layout Layout) {
	s.layout, s.disk.layout, s.startedAt, s.timings = layout, layout, time.Now(), Timings{}
	for _, project := range s.disk.projects() {
		project.Forget()
	}
}

// StartProgram lets the init of a parked spec start the program of the spec that the sandbox
// has now: its stdin and its arguments take the place of those that it was started with. env is
// added to the environment.
func (s *Sandbox) StartProgram(spec Spec, env []string) error {
	m := initbin.StartMessage{Env: env}
	if spec.Stdio != nil {
		m.Stdin = spec.Stdio.stdin()
	}
	switch {
	case spec.Filter != nil:
		m.Args = spec.Filter.Args
	case spec.Program != nil:
		m.Args = spec.Program[1:]
	}
	if s.control == nil {
		return errNoInit
	}
	if err := s.control.send(m); err != nil {
		return fmt.Errorf("start program of a waiting sandbox: %w", err)
	}
	return nil
}

// readyPoll is how often Begin looks whether the container is still there.
const readyPoll = 10 * time.Millisecond

// Begin waits for the init of a parked spec that Start has just started, and lets it start the
// program: as StartProgram. Where the container ends before, Wait tells why.
func (s *Sandbox) Begin(ctx context.Context, spec Spec, env []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cleanupTime, errNoInit)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for s.Running() {
		select {
		case <-s.Ready():
			return s.StartProgram(spec, env)
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("begin: %w", context.Cause(ctx))
		}
	}
	return nil
}

var errOccupied = errors.New("something else has the place of an input file")

// linkEntry makes a directory or links a file, unless it is there already.
func linkEntry(entry fs.DirEntry, name, target string) (err error) {
	if entry.IsDir() {
		err = mkdir(target, 0o755)
	} else {
		err = os.Link(name, target)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, err := os.Lstat(target)
	if err != nil {
		return err
	}
	source, err := entry.Info()
	if err != nil {
		return err
	}
	if os.SameFile(there, source) || entry.IsDir() && there.IsDir() {
		return nil
	}
	return errOccupied
}
