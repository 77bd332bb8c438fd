package pipe

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
)

// Runner runs Agentic Units.
type Runner interface {
	// Prepare loads a task's unit and checks its input; it starts nothing. The unit reads
	// the file stdin; "" is none.
	Prepare(task Task, stdin string) (Unit, error)
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

// Run runs the tasks and returns the records of all tasks that ran. The first failure ends
// all of them. The error is one of the Runner's, or an Unavailable fault of Dir's disk.
func Run(ctx context.Context, tasks []Task, runner Runner, opts Options) ([]api.Record, error) {
	p := pipeline{runner: runner, opts: opts}
	if opts.Joined && isLine(tasks) {
		return p.atOnce(ctx, tasks)
	}
	return p.inTurn(ctx, tasks)
}

type pipeline struct {
	runner Runner
	opts   Options
}

// inTurn runs the tasks one after the other, each on a finished result. It returns the
// records of all tasks that ran: the last of them failed, or all are done.
func (p pipeline) inTurn(ctx context.Context, tasks []Task) (records []api.Record, err error) {
	for _, task := range tasks {
		record, err := p.onFile(ctx, task)
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

func (p pipeline) onFile(ctx context.Context, task Task) (api.Record, error) {
	stdin := p.opts.Stdin
	if task.From != "" {
		stdin = p.result(task.From)
	}
	unit, err := p.runner.Prepare(task, stdin)
	if err != nil {
		return api.Record{}, err
	}
	return unit.Run(ctx, Join{})
}
