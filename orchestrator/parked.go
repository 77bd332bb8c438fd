package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/unit"
)

const (
	// parkTime is how long a sandbox may take until it waits for its run.
	parkTime = 30 * time.Second
	// parkPoll is how often somebody looks whether it still lives meanwhile.
	parkPoll = 10 * time.Millisecond
)

// parked is a sandbox that was started before its run is known. One run claims it, or
// nobody ever does; where its unit wants that, it waits again afterwards.
type parked struct {
	id      string // in the place of a run's, in its labels
	key     string // of the unit's content, see Run.imageKey
	deep    bool   // the program is loaded and asks for its run; else the init waits before it
	image   api.ImageRef
	spec    runtime.Spec
	layout  runtime.Layout
	sandbox *runtime.Sandbox
	log     *runtime.Log
	lines   *heldLines
	since   time.Time // it waits
	born    time.Time
	over    atomic.Bool // its program has written more than it may

	runs int    // that it may serve
	had  int    // of which it has had so many
	last string // the latest of them

	api    *handoff.Parking
	stop   context.CancelFunc // of its API
	served chan struct{}
}

// park starts a sandbox of a unit and returns when it waits for a run. What it made is gone
// again after an error.
func (s *Service) park(ctx context.Context, u *unit.Unit, id string, deep bool) (_ *parked, err error) {
	run := newRun(id, prepared{}, s.request(u))
	run.record.Version = u.Version
	image, err := s.exec.ensureImage(ctx, run)
	if err != nil {
		return nil, err
	}
	p := &parked{id: id, key: run.imageKey(), deep: deep, image: run.record.Image, lines: &heldLines{gone: make(chan struct{})}}
	if p.spec, err = s.exec.parkedSpec(run, image, deep); err != nil {
		return nil, err
	}
	if err := s.placeParked(p, image); err != nil {
		return nil, errors.Join(err, removeRun(p.layout.Dir))
	}
	if err := s.startParked(ctx, p); err != nil {
		return nil, errors.Join(err, p.discard(ctx))
	}
	p.runs = runsOf(u, image, deep)
	p.born = time.Now()
	p.since = p.born
	return p, nil
}

// parkedSpec is what a run's would be, but for what only a run knows.
func (o *Orchestrator) parkedSpec(run *Run, image runtime.Image, deep bool) (runtime.Spec, error) {
	spec := o.spec(run, image)
	spec.Durable, spec.Park = true, !deep
	if !run.isAU() {
		return spec, nil
	}
	spec.Filter = &runtime.Filter{}
	var err error
	if run.req.ModelPath != "" {
		spec.Filter.Model, err = o.modelMount(run.req.ModelPath)
	}
	return spec, err
}

func (s *Service) placeParked(p *parked, image runtime.Image) error {
	p.layout = runtime.OpenLayout(s.path(path.Join(poolDir, p.id)), "")
	if err := os.MkdirAll(p.layout.Dir, 0o700); err != nil {
		return noRoom(err)
	}
	initFile, err := s.exec.initFile(image.Arch)
	if err != nil {
		return err
	}
	p.layout, err = runtime.NewLayout(p.layout.Dir, initFile)
	return err
}

func (s *Service) startParked(ctx context.Context, p *parked) (err error) {
	if err := p.serve(s); err != nil {
		return err
	}
	p.log = runtime.NewLog(p.spec.Limits.LogBytes, p.lines.add)
	ctx, cancel := context.WithTimeout(ctx, parkTime)
	defer cancel()
	started, stop := context.WithTimeout(context.WithoutCancel(ctx), parkTime) // a start that is broken off leaves a container
	defer stop()
	defer context.AfterFunc(started, p.lines.drop)() // else a start that fails would wait for a flood's end
	if p.sandbox, err = s.exec.startSandbox(started, p.spec, p.layout, p.log); err != nil {
		return err
	}
	return p.await(ctx)
}

// serve opens the capsule API, which knows no run yet.
func (p *parked) serve(s *Service) error {
	listener, err := p.layout.Listen(s.life)
	if err != nil {
		return fmt.Errorf("capsule api: %w", err)
	}
	ctx, stop := context.WithCancel(s.life)
	p.api, p.stop, p.served = handoff.NewParking(s.logger), stop, make(chan struct{})
	go func() {
		defer close(p.served)
		if err := handoff.Serve(ctx, listener, p.api, s.logger); err != nil {
			s.logger.Warn("capsule api ended badly", "sandbox", p.id, about(err))
		}
	}()
	return nil
}

var errNeverWaited = errors.New("the sandbox ended, or didn't ask for a run in time")

// await returns when the sandbox waits for a run.
func (p *parked) await(ctx context.Context) error {
	waits := p.sandbox.Ready()
	if p.deep {
		waits = p.api.Waiting()
	}
	tick := time.NewTicker(parkPoll)
	defer tick.Stop()
	for p.sandbox.Lives() {
		select {
		case <-waits:
			return nil
		case <-tick.C:
		case <-ctx.Done():
			return errNeverWaited
		}
	}
	return errNeverWaited
}

// waits reports whether a run could claim it now.
func (p *parked) waits() bool {
	return p.sandbox.Lives() && !p.over.Load() && (!p.deep || p.api.Live())
}

// close ends the API of a sandbox that nobody claimed.
func (p *parked) close() {
	p.lines.drop()
	if p.stop != nil {
		p.stop()
		<-p.served
	}
}

// discard removes all of a sandbox that nobody claimed. What the engine can't remove now
// is removed by its label, at the latest with the next start.
func (p *parked) discard(ctx context.Context) error {
	p.close()
	var err error
	if p.sandbox != nil {
		err = p.sandbox.Remove(ctx)
	}
	return errors.Join(err, removeRun(p.layout.Dir))
}

// heldLines keeps what a waiting sandbox writes until there is a run whose log it is.
type heldLines struct {
	gone chan struct{} // closed by drop

	once  sync.Once
	mu    sync.Mutex
	to    func(runtime.LogLine)
	lines []runtime.LogLine
	bytes int
}

// maxHeld is how much is kept; a program that writes more waits for its run to do so.
const maxHeld = 1 << 20

// drop says that there never will be a run: nobody waits for one any more.
func (h *heldLines) drop() { h.once.Do(func() { close(h.gone) }) }

func (h *heldLines) add(line runtime.LogLine) {
	for !h.take(line) {
		select {
		case <-h.gone:
			return
		case <-time.After(parkPoll):
		}
	}
}

func (h *heldLines) take(line runtime.LogLine) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.to != nil:
		h.to(line)
	case h.bytes >= maxHeld:
		return false
	default:
		h.lines = append(h.lines, line)
		h.bytes += len(line.Text) + 1
	}
	return true
}

// hold keeps lines again.
func (h *heldLines) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.to, h.bytes = nil, 0
}

// handTo gives all lines, the held ones first, to a run.
func (h *heldLines) handTo(to func(runtime.LogLine)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.lines {
		to(line)
	}
	h.lines, h.to = nil, to
}
