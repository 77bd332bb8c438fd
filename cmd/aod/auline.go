package main

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator"
)

// errPipeEnded is why a unit of a pipeline ends in which another one failed.
var errPipeEnded = errors.New("another unit of the pipeline failed")

// isLine reports whether each task but the first reads what the one before it prints.
func isLine(tasks []auTask) bool {
	for i, task := range tasks {
		if i == 0 && task.From != "" || i > 0 && task.From != tasks[i-1].ID {
			return false
		}
	}
	return true
}

// stage is a task of a line, with what joins it to its neighbours.
type stage struct {
	req    orchestrator.Request
	in     *io.PipeReader // nil: the first
	out    *io.PipeWriter // nil: the last
	record api.Record
	err    error
}

// atOnce runs the tasks of a line at the same time. With the first that fails all end.
func (p *auPipe) atOnce(ctx context.Context, tasks []auTask) ([]api.Record, error) {
	stages, err := p.stages(tasks)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, s := range stages {
		all.Go(func() {
			s.record, s.err = p.wait(ctx, s.req)
			s.end(cancel)
		})
	}
	all.Wait()
	var records []api.Record
	for _, s := range stages {
		if s.record.ID != "" {
			records = append(records, s.record)
		}
		if s.err != nil && !errors.Is(s.err, errPipeEnded) {
			err = errors.Join(err, s.err)
		}
	}
	return records, err
}

// stages loads every unit before one of them is run.
func (p *auPipe) stages(tasks []auTask) (stages []*stage, err error) {
	var in *io.PipeReader
	for i, task := range tasks {
		s := &stage{in: in}
		flags := p.flags
		if i > 0 {
			flags.stdin = ""
		}
		if s.req, err = p.request(task, flags); err != nil {
			return nil, err
		}
		s.req.Stream = &orchestrator.Stream{}
		if s.in != nil {
			s.req.Stream.Stdin = s.in
		}
		if i < len(tasks)-1 {
			in, s.out = io.Pipe()
			s.req.Stream.Stdout = s.out
		}
		stages = append(stages, s)
	}
	return stages, nil
}

// end tells the neighbours: who reads what this one printed sees its end only where that is
// a result.
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

// decisive is the record by which a pipeline's end is told: the first that failed by
// itself, else the last.
func decisive(records []api.Record) api.Record {
	for _, r := range records {
		if r.Outcome != api.Success && r.Outcome != api.WasCancelled {
			return r
		}
	}
	for _, r := range records { // somebody cancelled all of it
		if r.Outcome != api.Success {
			return r
		}
	}
	return records[len(records)-1]
}
