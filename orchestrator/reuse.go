package orchestrator

import (
	"context"
	"os"
	"path"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/unit"
)

const (
	// lastLineTime is how long the end of a run's log may take to come, askTime how long its
	// program may take until it asks for another run.
	lastLineTime = 2 * time.Second
	askTime      = 5 * time.Second
	// reusePoll is how often somebody looks meanwhile.
	reusePoll = 2 * time.Millisecond
)

// lease is a run's part in a container that serves several, one after the other. The zero
// lease is a container of the run's own.
type lease struct {
	Number    int    `json:"number,omitempty"`    // of the run in its container, from 1
	Remaining int    `json:"remaining,omitempty"` // runs that may follow it there
	Behind    string `json:"behind,omitempty"`    // the run before it; "" for the first

	told bool // its program hears of it from this process
}

// lasts reports whether the run ends when it has posted its result, and its container doesn't.
func (l lease) lasts() bool { return l.Remaining > 0 }

// share makes a log the run's.
func (l lease) share(log *runtime.Log, run string) {
	if l.Number > 0 {
		log.Serve(handoff.EndLine(run))
	}
}

// runsOf is how many runs a waiting sandbox may serve. An image's volumes are directories
// that nobody empties.
func runsOf(u *unit.Unit, image runtime.Image, deep bool) int {
	if !deep || len(image.Volumes) > 0 {
		return 1
	}
	return max(u.Capsule.Agent.Reuse, 1)
}

// lease is that of the next run.
func (p *parked) lease() lease {
	if p.runs <= 1 {
		return lease{}
	}
	return lease{Number: p.had + 1, Remaining: p.runs - p.had - 1, Behind: p.last, told: true}
}

// leased remembers the run's part in its container.
func (j *job) leased(l lease) { j.lease, j.private.Lease = l, l }

// settle waits for what is to come of a run that has its outcome. It returns its sandbox
// where that waits for another run already.
func (j *job) settle(ctx context.Context) *parked {
	b := j.box
	switch {
	case b == nil || !b.early:
		return nil
	case !b.alive:
		b.rest(ctx)
		return nil
	}
	over := b.log.Over()
	whole := j.waitFor(lastLineTime, func() bool { return closed(over) })
	b.noteLog()
	if !whole || b.parked == nil || j.record.Outcome != api.Success {
		return nil
	}
	if err := j.reclaim(ctx); err != nil {
		j.service.logger.Warn("container not used again", "run", j.id, "container", b.sandbox.ID(), about(err))
		return nil
	}
	return b.parked
}

// waitFor reports whether something comes to be so in time, while the sandbox lives and this
// process goes on.
func (j *job) waitFor(patience time.Duration, is func() bool) bool {
	tick := time.NewTicker(reusePoll)
	defer tick.Stop()
	for end := time.Now().Add(patience); !is(); {
		if !j.box.sandbox.Lives() || time.Now().After(end) {
			return false
		}
		select {
		case <-tick.C:
		case <-j.service.life.Done():
			return false
		}
	}
	return true
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reclaim makes the run's sandbox as new, when its program waits for another run and does
// nothing else any more. After an error it has to be discarded.
func (j *job) reclaim(ctx context.Context) error {
	p := j.box.parked
	if !j.waitFor(askTime, p.waits) {
		return errNeverWaited
	}
	if err := p.layout.Renew(ctx); err != nil {
		return err
	}
	home := runtime.OpenLayout(j.service.path(path.Join(poolDir, p.id)), "")
	if err := os.Rename(p.layout.Dir, home.Dir); err != nil {
		return noRoom(err)
	}
	p.layout = home
	p.sandbox.Claim(home)
	p.lines.hold()
	p.since = time.Now()
	delete(j.private.Boxes, j.attempt) // as soon as that is stored, the sandbox may be another run's
	return nil
}

// handBack puts a sandbox that waits again where the next run finds it.
func (j *job) handBack(ctx context.Context, p *parked) {
	j.box = nil
	if j.service.pool.takeBack(j.record.Unit, p) {
		return
	}
	j.service.pool.discard(ctx, []*parked{p})
	j.service.pool.forget(map[int]string{0: p.id})
}

// takeBack puts a sandbox on its shelf again, unless there is no room.
func (p *pool) takeBack(unit string, back *parked) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	shelf := p.shelf(unit)
	delete(shelf.out, back.id)
	all, bytes := p.stock()
	full := len(shelf.waiting) >= shelf.wanted(now, p.opts.Idle) || all >= p.opts.Size || bytes+shelf.bytes() > p.opts.MemoryBytes
	if p.emptied || full || now.Sub(back.born) > p.opts.MaxAge {
		return false
	}
	shelf.waiting = append(shelf.waiting, back)
	delete(p.lent, back.id)
	return true
}

// lent remembers a sandbox that may come back.
func (s *shelf) lent(p *parked, now time.Time) {
	if !p.lease().lasts() {
		return
	}
	if s.out == nil {
		s.out = map[string]time.Time{}
	}
	s.out[p.id] = now
}

// soon is how many sandboxes may come back before there could be others.
func (s *shelf) soon(now time.Time) int {
	for id, since := range s.out {
		if now.Sub(since) > refillTime {
			delete(s.out, id)
		}
	}
	return len(s.out)
}
