package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/runtime"
)

// reporter tells the server what happens in an attempt while it goes on.
type reporter struct {
	held   *held
	news   chan struct{} // has one when there is something to tell
	urgent chan struct{} // has one when that is to be told at once

	mu      sync.Mutex
	builds  []api.BuildEvent
	hosts   []api.EgressEvent // that the program reached for the first time
	runs    *wire.Progress    // since when the program runs; nil: it doesn't yet
	asks    bool              // what the server has got from an earlier process isn't known
	sure    bool              // it is to be asked that, too, where there is nothing to tell
	waits   *api.Waiting      // for what the run waits, as the server was told
	telling sync.Mutex
}

func newReporter(h *held) *reporter {
	return &reporter{
		held: h, news: make(chan struct{}, 1), urgent: make(chan struct{}, 1), asks: h.now().Record != nil,
	}
}

func (r *reporter) wake() { wake(r.news) }

func wake(news chan<- struct{}) {
	select {
	case news <- struct{}{}:
	default:
	}
}

// running has the server know at once that the program runs.
func (r *reporter) running() {
	progress := r.held.progress()
	r.mu.Lock()
	r.runs = &progress
	r.mu.Unlock()
	wake(r.urgent)
}

// makeSure has the server be asked what it has, also where it should have all.
func (r *reporter) makeSure() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks, r.sure = true, true
}

// built passes on a step of a build, but for what it writes.
func (r *reporter) built(event runtime.BuildEvent) {
	if event.State == runtime.StepLog {
		return
	}
	r.mu.Lock()
	if len(r.builds) < mostBuilds {
		r.builds = append(r.builds, api.BuildEvent{Step: event.Step, Name: event.Name, State: string(event.State)})
	}
	r.mu.Unlock()
	r.wake()
}

// reached passes on that the program reaches for a host for the first time.
func (r *reporter) reached(e api.EgressEvent) {
	r.mu.Lock()
	if len(r.hosts) < egress.MaxRows {
		r.hosts = append(r.hosts, e)
	}
	r.mu.Unlock()
	r.wake()
}

// mostBuilds is how many steps of a build wait to be told: they may be lost.
const mostBuilds = 200

// gatherTime is how long lines are gathered before they are told.
const gatherTime = 50 * time.Millisecond

// gather waits for more to be told, but for what is urgent.
func (r *reporter) gather(ctx context.Context) {
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-r.urgent:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// run tells what there is until ctx ends.
func (r *reporter) run(ctx context.Context) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-r.urgent:
		case <-look.C: // whether it waits for something
		case <-r.news:
			r.gather(ctx)
		case <-ctx.Done():
			return
		}
		err := r.held.worker.link.repeat(ctx, "report", func() error { return r.flush(ctx) })
		if errors.Is(err, errVoid) {
			r.held.void()
		}
		if err != nil && ctx.Err() == nil {
			r.held.worker.logger.Info("report not taken", "lease", r.held.lease(), fault.LogAttr(err))
		}
	}
}

// flush tells all that there is now.
func (r *reporter) flush(ctx context.Context) error {
	r.telling.Lock()
	defer r.telling.Unlock()
	for {
		more, err := r.flushOnce(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// flushOnce sends one report, and says whether there is more. The first one of a process that goes on with an attempt
// asks what the server has.
func (r *reporter) flushOnce(ctx context.Context) (more bool, err error) {
	h := r.held
	first, some, after, err := h.lines.next()
	if err != nil {
		return false, err
	}
	firstSaid, said, afterSaid, err := h.said()
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	told := wire.Reported{Builds: r.builds, Egress: r.hosts, Running: r.runs, Waits: h.run.WaitsFor()}
	asks := r.asks
	if !asks {
		told.Line, told.Lines, told.First, told.Told = first, some, firstSaid, said
	}
	nothing := told.IsEmpty() && told.Waits == r.waits && !r.sure && len(some)+len(said) == 0
	r.mu.Unlock()
	if nothing {
		return false, nil
	}
	var answer wire.Received
	if err := h.worker.link.call(ctx, leasePath(h.lease(), wire.Report), told, &answer); err != nil {
		return false, err
	}
	r.mu.Lock()
	r.builds, r.hosts = r.builds[len(told.Builds):], r.hosts[len(told.Egress):]
	if r.runs == told.Running {
		r.runs = nil
	}
	if r.waits = told.Waits; asks {
		r.asks, r.sure = false, false
	}
	r.mu.Unlock()
	if asks {
		return true, errors.Join(h.lines.skipTo(answer.Lines), h.sayFrom(answer.Told))
	}
	h.lines.took(first+int64(len(some)), after)
	return len(some)+len(said) > 0, h.heard(answer.Told, firstSaid, len(said), afterSaid)
}
