package orchestrator

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/runtime"
)

// occupy makes a waiting sandbox the attempt's own. From the moment that it is given its run
// it is like any other; before, an error leaves it to be discarded.
func (j *job) occupy(ctx context.Context, p *parked) error {
	began := time.Now()
	if err := removeRun(j.dir()); err != nil {
		return err
	}
	if err := os.Rename(p.layout.Dir, j.dir()); err != nil {
		return noRoom(err)
	}
	p.layout = runtime.OpenLayout(j.dir(), "")
	p.sandbox.Claim(p.layout)
	if !j.furnished() {
		return errUnfurnished
	}
	filter, env, err := j.filterOf(ctx, p)
	if err != nil {
		return err
	}
	b := &box{run: j.Run, sandbox: p.sandbox, layout: p.layout, limits: j.req.limits(j.service.exec.limits), log: p.log, waited: true, deep: p.deep}
	if j.lease.Number > 0 {
		b.parked, p.had, p.last = p, j.lease.Number, j.id
		j.lease.share(p.log, j.id)
	}
	b.desk, err = j.service.exec.takeDesk(ctx, j.Run, p, b.limits)
	if err != nil {
		return err
	}
	p.lines.handTo(j.logged)
	if !p.deep {
		if err := p.sandbox.Begin(filter, env); err != nil {
			b.desk.close(errCallerEnded)
			return err
		}
	}
	j.box, j.record.Image = b, p.image
	j.record.Container = &api.Container{ID: p.sandbox.ID(), WaitedMS: milliseconds(began.Sub(p.since)), Served: j.lease.Number}
	j.record.Timings.Create = 0
	j.record.Timings.Start = milliseconds(time.Since(began))
	return nil
}

var errUnfurnished = errors.New("the input can't be put into the waiting sandbox")

// filterOf is what an Agentic Unit's program gets that the sandbox was started without.
func (j *job) filterOf(ctx context.Context, p *parked) (*runtime.Filter, []string, error) {
	if !j.isAU() {
		return nil, nil, nil
	}
	spec := p.spec
	if err := j.service.exec.filter(ctx, j.Run, &spec, p.layout); err != nil {
		return nil, nil, err
	}
	return spec.Filter, spec.Env[len(p.spec.Env):], nil
}

// unborn reports whether a sandbox that was claimed ended before its program got the run:
// nothing of that has happened then.
func (b *box) unborn(end runtime.End) bool {
	return b.waited && end.Cause == nil && (end.Report.Abandoned || b.deep && !b.desk.asked())
}
