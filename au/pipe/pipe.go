package pipe

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
)

// Runner runs Agentic Units.
type Runner interface {
	// Prepare loads a task's unit and checks its arguments; it doesn't start the task, and
	// may be called for several tasks at the same time. The unit will read the file stdin, which
	// need not be there yet; "" is none.
	Prepare(ctx context.Context, task Task, stdin string) (Unit, error)
}

// Unit is a unit that can be started, once.
type Unit interface {
	// Run returns the record of the unit's run at its end. The way the run ends is no
	// error. A record without an id belongs to a run that never existed.
	Run(ctx context.Context, join Join) (api.Record, error)
}

// Join connects a unit to others that run at the same time. Both fields are nil if there
// are none.
type Join struct {
	// Stdin is the output of the previous unit, instead of a file. Run closes it.
	Stdin io.ReadCloser
	// Stdout gets the unit's output, all of it before Run returns. Run doesn't close it.
	Stdout io.Writer
}

// Options configure a pipeline.
type Options struct {
	Stdin string // the file that tasks without From read; "" is none
	Dir   string // an empty directory for results; the caller removes it
	// Joined says whether units may be joined by pipes. If not, they run in turn.
	Joined bool
}

// Failures are the errors of several units, in the order of the pipeline.
type Failures []error

func (f Failures) Error() string { return errors.Join(f...).Error() }

// Unwrap lets errors.As find the first.
func (f Failures) Unwrap() []error { return f }

// inOrder returns the errors that there are: nil, the one, or Failures.
func inOrder(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return Failures(errs)
}

// Run runs the tasks and returns the records of all tasks that ran. Nothing is run unless
// all can be prepared. The first failure ends all of them. The error is one of the Runner's,
// Failures if there are several, or an Unavailable fault of Dir's disk.
func Run(ctx context.Context, tasks []Task, runner Runner, opts Options) ([]api.Record, error) {
	p := pipeline{runner: runner, opts: opts, joined: opts.Joined && isLine(tasks)}
	units, err := p.prepare(ctx, tasks)
	if err != nil {
		return nil, err
	}
	if p.joined {
		return p.atOnce(ctx, units)
	}
	return p.inTurn(ctx, tasks, units)
}

type pipeline struct {
	runner Runner
	opts   Options
	joined bool
}

// prepare prepares all units before any is run.
func (p pipeline) prepare(ctx context.Context, tasks []Task) ([]Unit, error) {
	units, errs := make([]Unit, len(tasks)), make([]error, len(tasks))
	var all sync.WaitGroup
	for i, task := range tasks {
		all.Go(func() { units[i], errs[i] = p.runner.Prepare(ctx, task, p.stdin(task)) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // once, not of each
	}
	return units, inOrder(errs)
}

// stdin is the file that a task reads; "" is none, or a pipe.
func (p pipeline) stdin(task Task) string {
	switch {
	case task.From == "":
		return p.opts.Stdin
	case p.joined:
		return ""
	}
	return p.result(task.From)
}

// inTurn runs the tasks one after the other, each on a finished result. It returns the
// records of all tasks that ran: the last of them failed, or all are done.
func (p pipeline) inTurn(ctx context.Context, tasks []Task, units []Unit) (records []api.Record, err error) {
	for i, task := range tasks {
		record, err := units[i].Run(ctx, Join{})
		if record.ID != "" {
			records = append(records, record)
		}
		if err != nil || record.Outcome != api.Success {
			return records, err
		}
		if err := os.WriteFile(p.result(task.ID), record.Output, 0o600); err != nil {
			return records, fault.Wrap(fault.Unavailable, err, "a result can't be kept").WithHint("is the disk of %s full?", os.TempDir())
		}
	}
	return records, nil
}

func (p pipeline) result(id string) string { return filepath.Join(p.opts.Dir, id+".json") }
