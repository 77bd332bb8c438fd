package container

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

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
	Stdin io.Reader // read to its end before the unit starts; nil is no input
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

// Try starts a unit once, always without a network, and returns what it did. A failure of the
// unit is no error.
func (c *Containers) Try(ctx context.Context, u *unit.Unit, trial Trial) (seen Observed, err error) {
	if !isAgenticUnit(u) {
		return seen, fault.New(fault.Input, "%q is a capsule, no Agentic Unit", u.Name)
	}
	err = c.besideRuns(ctx, u, trial.Observe, func(r *run.Run, spec runtime.Spec, dir string) error {
		spec.Purpose, spec.Network, spec.Watch = "trial", "none", true
		seen, err = c.try(ctx, r, spec, filepath.Join(dir, "trial"), trial)
		return err
	})
	return seen, err
}

// try makes a trial in a directory of its own, which it removes.
func (c *Containers) try(
	ctx context.Context, r *run.Run, spec runtime.Spec, dir string, trial Trial,
) (seen Observed, err error) {
	layout, err := c.newLayout(dir, spec.Image, "")
	if err != nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, safefs.RemoveTree(dir)) }()
	spec, err = c.trialSpec(spec, trial)
	if err != nil {
		return seen, err
	}
	stdin, err := c.placeStdin(&spec, layout, trial)
	if err != nil {
		return seen, err
	}
	defer func() { _ = stdin.close() }() // nothing was written
	layout = layout.At(c.engine, spec)
	stderr := &stderrText{limit: spec.Limits.LogBytes}
	log := runtime.NewLog(spec.Limits.LogBytes, func(line runtime.LogLine) { stderr.add(line); r.Log(line) })
	end, err := c.startToEnd(ctx, spec, layout, log, cmp.Or(trial.Timeout, spec.Limits.Timeout))
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

// startToEnd starts a container, and returns when it has ended and is removed and its log is
// complete.
func (c *Containers) startToEnd(
	ctx context.Context, spec runtime.Spec, layout runtime.Layout, log *runtime.Log, timeout time.Duration,
) (runtime.End, error) {
	sandbox, err := c.startSandbox(ctx, spec, layout, log)
	if err != nil {
		return runtime.End{}, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, run.ErrTimeout)
	defer cancel()
	end, err := sandbox.Wait(limited)
	if err == nil && end.Early { // the rest of its log is to come
		_, _ = sandbox.AwaitExit(context.WithoutCancel(ctx)) // the program's end is known
	}
	return end, errors.Join(err, sandbox.Remove(ctx), endedByOthers(end))
}

// trialSpec converts the spec of a run to that of a trial.
func (c *Containers) trialSpec(spec runtime.Spec, trial Trial) (runtime.Spec, error) {
	spec.Durable, spec.Park = false, false // that of a run may be a waiting sandbox's
	spec.Limits.MemoryBytes = cmp.Or(trial.MemoryBytes, spec.Limits.MemoryBytes)
	spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], trial.Env...)
	spec.Filter, spec.Stdio = &runtime.Filter{Args: trial.Args}, &runtime.Stdio{}
	if trial.ModelPath == "" {
		return spec, nil
	}
	var err error
	spec.Filter.Model, err = c.modelMount(trial.ModelPath)
	return spec, err
}
