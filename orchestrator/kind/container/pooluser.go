package container

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// poolUser has the sandboxes of a run that waited for it in the pool.
type poolUser struct {
	run      *run.Run
	machine  *machine
	pool     *pool.Pool
	saved    *saved
	cold     bool          // no warm sandbox is taken any more
	released *pool.Sandbox // waits for another run, when it has been stored that it isn't this one's
}

// acquire remembers which warm sandbox the attempt has.
func (p *poolUser) acquire(waiting *pool.Sandbox) {
	if p.saved.Sandboxes == nil {
		p.saved.Sandboxes = map[int]string{}
	}
	p.saved.Sandboxes[p.run.Attempt] = waiting.ID
	p.saved.Slot = waiting.Slot()
}

// abandon forgets the attempt's warm sandbox. If that was not removed, the end of the run
// removes it.
func (p *poolUser) abandon(removed bool) {
	id := p.saved.Sandboxes[p.run.Attempt]
	delete(p.saved.Sandboxes, p.run.Attempt)
	p.saved.Slot = pool.ReuseSlot{}
	p.cold = true
	if id == "" { // it was the attempt's own
		return
	}
	if removed {
		p.pool.Forget(id)
		return
	}
	p.saved.Sandboxes[-p.run.Attempt] = id
}

// forget tells the pool that the run no longer uses its sandboxes.
func (p *poolUser) forget() {
	for _, id := range p.saved.Sandboxes {
		p.pool.Forget(id)
	}
}

// moveIn makes the sandbox's directory the attempt's, with the run's input in it.
func (p *poolUser) moveIn(s *pool.Sandbox) error {
	if err := safefs.RemoveTree(p.run.AttemptDir()); err != nil {
		return err
	}
	if err := os.Rename(s.Layout.Dir, p.run.AttemptDir()); err != nil {
		return run.StorageFault(err)
	}
	s.Layout = runtime.OpenLayout(p.run.AttemptDir(), "")
	s.Runtime.Assign(s.Layout)
	return p.placeInput()
}

// hasResult reports whether the program has posted its result. It gets no input then, since
// it may be waiting for another run.
func (p *poolUser) hasResult() bool {
	_, err := os.Stat(runtime.OpenLayout(p.run.AttemptDir(), "").PostedResult())
	return err == nil && p.saved.Slot.Continues()
}

// placeInput gives an acquired sandbox the run's input.
func (p *poolUser) placeInput() error {
	layout := runtime.OpenLayout(p.run.AttemptDir(), "")
	return errors.Join(layout.LinkInputs(p.run.InputDir()), layout.WriteInput(p.run.Input.Payload.JSON()))
}

// share gives the run its place in a sandbox that may serve several, and reports whether it does.
func (p *poolUser) share(s *pool.Sandbox) bool {
	slot := p.saved.Slot
	if slot.Number <= 0 {
		return false
	}
	s.Had, s.Last = slot.Number, p.run.ID
	slot.Share(s.Log, p.run.ID)
	return true
}

// reset removes everything of the run from its sandbox, once the program waits for another
// run. After an error the sandbox has to be discarded.
func (p *poolUser) reset(ctx context.Context, a *attempt) error {
	s := a.shared
	if !a.waitFor(ctx, askTime, s.Ready) {
		return pool.ErrNotReady
	}
	if err := s.Layout.Reset(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	home := runtime.OpenLayout(filepath.Join(p.machine.poolDir(), s.ID), "")
	if err := os.Rename(s.Layout.Dir, home.Dir); err != nil {
		return run.StorageFault(err)
	}
	s.Layout = home
	s.Runtime.Assign(home)
	s.Lines.Hold()
	s.Since = time.Now()
	delete(p.saved.Sandboxes, p.run.Attempt) // as soon as that is stored, the sandbox may be another run's
	return nil
}

// giveBack gives a sandbox that waits again back to the pool. It reports whether it did.
func (p *poolUser) giveBack(ctx context.Context) bool {
	s := p.released
	if s == nil {
		return false
	}
	p.released = nil
	if !p.pool.Release(p.run.Unit.Name, s) {
		p.pool.Discard(ctx, s)
		p.pool.Forget(s.ID)
	}
	return true
}
