package pipe

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/agent-on-demand/aod/api"
)

// errPipeEnded ends the other units of a pipeline when one has failed.
var errPipeEnded = errors.New("another unit of the pipeline failed")

// isLine reports whether each task but the first reads the output of the one before it.
func isLine(tasks []Task) bool {
	for i, task := range tasks {
		if i == 0 && task.From != "" || i > 0 && task.From != tasks[i-1].ID {
			return false
		}
	}
	return true
}

// stage is a task of a line, with the pipes to its neighbours.
type stage struct {
	unit   Unit
	in     *io.PipeReader // nil: the first
	out    *io.PipeWriter // nil: the last
	record api.Record
	err    error
}

// atOnce runs the units of a line at the same time. The first failure ends all of them.
func (p pipeline) atOnce(ctx context.Context, units []Unit) ([]api.Record, error) {
	stages := joined(units)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, s := range stages {
		all.Go(func() {
			s.record, s.err = s.unit.Run(ctx, s.join())
			s.end(cancel)
		})
	}
	all.Wait()
	var records []api.Record
	var errs []error
	for _, s := range stages {
		if s.record.ID != "" {
			records = append(records, s.record)
		}
		if !errors.Is(s.err, errPipeEnded) {
			errs = append(errs, s.err)
		}
	}
	return records, inOrder(errs)
}

// joined joins units by pipes.
func joined(units []Unit) (stages []*stage) {
	var in *io.PipeReader
	for i, unit := range units {
		s := &stage{unit: unit, in: in}
		if i < len(units)-1 {
			in, s.out = io.Pipe()
		}
		stages = append(stages, s)
	}
	return stages
}

// join leaves missing ends nil.
func (s *stage) join() (j Join) {
	if s.in != nil {
		j.Stdin = s.in
	}
	if s.out != nil {
		j.Stdout = s.out
	}
	return j
}

// end closes the pipes to the neighbours. The next unit sees an end of its input only if
// this one printed a result.
func (s *stage) end(cancel context.CancelCauseFunc) {
	var failed error
	if s.err != nil || s.record.Outcome != api.Success {
		failed = errPipeEnded
		cancel(failed)
	}
	if s.in != nil {
		_ = s.in.CloseWithError(errPipeEnded)
	}
	if s.out != nil {
		_ = s.out.CloseWithError(failed)
	}
}

// Failed returns the records of the units that failed by themselves, in order.
func Failed(records []api.Record) (failed []api.Record) {
	for _, r := range records {
		if r.Outcome != api.Success && r.Outcome != api.WasCancelled {
			failed = append(failed, r)
		}
	}
	return failed
}

// Decisive returns the record that decides a pipeline's outcome: the first that failed by
// itself, else the last. There has to be a record.
func Decisive(records []api.Record) api.Record {
	if failed := Failed(records); len(failed) > 0 {
		return failed[0]
	}
	for _, r := range records { // the whole pipeline was cancelled
		if r.Outcome != api.Success {
			return r
		}
	}
	return records[len(records)-1]
}
