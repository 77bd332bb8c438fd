package workers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// execution implements run.Execution wherever the run has its slot: at a worker, for which it speaks, or here.
type execution struct {
	f     *Feature
	run   *run.Run
	local run.Execution
	saved *saved
	lease *lease // of the last attempt; nil: it was here, or there was none
	far   *far   // what is stored of the run's session; nil: it hasn't been read
}

// saved is what is stored of a run. Of one that was never at a worker it is what the kind alone stores.
type saved struct {
	here  any             // what the kind saved
	Lease terms           `json:"lease,omitzero"`
	Local json.RawMessage `json:"local,omitempty"`
	Here  bool            `json:"here,omitempty"` // an attempt was made here
}

// MarshalJSON implements json.Marshaler.
func (s *saved) MarshalJSON() ([]byte, error) {
	here, err := json.Marshal(s.here)
	if s.Lease.ID == "" || err != nil {
		return here, err
	}
	type plain saved
	return json.Marshal(plain{Lease: s.Lease, Local: here, Here: s.Here})
}

func newExecution(f *Feature, r *run.Run, kind run.Kind) *execution {
	x := &execution{f: f, run: r, saved: &saved{}}
	if raw, is := r.Saved.(json.RawMessage); is {
		_ = json.Unmarshal(raw, x.saved) // what the kind alone has written has neither field
		if x.saved.Lease.ID != "" {
			r.Saved = x.saved.Local
		}
	}
	x.local = kind.Execution(r)
	x.saved.here, r.Saved = r.Saved, x.saved
	if of := x.saved.Lease; of.ID != "" && of.Attempt == r.Attempt && r.State() != api.Failed {
		x.lease = newLease(of, r)
		f.leases.add(x.lease)
	}
	return x
}

// Attempt implements run.Execution.
func (x *execution) Attempt(ctx context.Context) (run.Result, error) {
	if x.lease != nil { // how it ended is stored
		x.void(x.lease)
		x.lease = nil
	}
	if x.run.Record.Worker == queue.Local {
		x.saved.Here, x.saved.Lease = true, terms{}
		return x.local.Attempt(ctx)
	}
	values, err := x.run.ReadSecrets(x.f.opts.Secret)
	if err != nil {
		return run.Failed(api.SystemError, 1, run.NoSecret(err)), nil
	}
	of, nonce, err := x.f.offered(ctx, x.run)
	if err != nil {
		return run.Result{}, err
	}
	l := newLease(terms{ID: rand.Text(), Worker: of.worker, Nonce: nonce, Attempt: x.run.Attempt}, x.run)
	l.secrets, l.talk = values, talkOf(x.run)
	if err = x.begin(l); err != nil {
		l = nil
	}
	of.leased <- l
	if err != nil {
		return run.Result{}, err
	}
	x.f.logger.Info("run leased", "run", x.run.ID, "attempt", x.run.Attempt, "worker", l.Worker)
	return x.lead(ctx, l)
}

// begin stores a lease, and that the run is starting by it.
func (x *execution) begin(l *lease) error {
	err := errors.Join(safefs.RemoveTree(x.run.AttemptDir()), os.MkdirAll(x.run.AttemptDir(), 0o700))
	if err != nil {
		return run.StorageFault(err)
	}
	x.beginSession(l)
	l.begins(0)
	x.saved.Lease, x.lease = l.terms, l
	x.f.leases.add(l)
	if err := x.run.Enter(api.Starting, ""); err != nil {
		x.f.leases.drop(l)
		x.lease = nil
		return err
	}
	return nil
}

// Resume implements run.Execution.
func (x *execution) Resume(ctx context.Context) (run.Result, error) {
	if x.lease == nil {
		return x.local.Resume(ctx)
	}
	if x.run.Unit.Kind == unit.MCP { // its client is gone
		x.void(x.lease)
		return x.local.Resume(ctx)
	}
	if _, err := x.f.secretsOf(x.lease); err != nil {
		x.run.Warn("secrets of the run can't be read any more, and aren't hidden in what it tells from here on")
	}
	x.giveSession(x.lease)
	seen := x.run.Logged()
	x.lease.begins(int64(seen.Stdout + seen.Stderr))
	return x.lead(ctx, x.lease)
}

// lead waits for the end of an attempt at a worker.
func (x *execution) lead(ctx context.Context, l *lease) (run.Result, error) {
	far := &farAPI{x: x, lease: l}
	end := x.await(ctx, l, far, l.talk != nil)
	if end.begun { // it mostly waits for its client
		far.calls.Lend(context.Background(), func() { end = x.await(ctx, l, far, false) })
	}
	result, err := end.result, end.err
	if end.told != nil {
		result, err = x.take(ctx, l, *end.told)
	}
	switch {
	case errors.Is(err, runtime.ErrDetach):
		far.close(runtime.ErrDetach)
	default:
		far.close(run.ErrCallerEnded)
		far.note(result.Failure)
	}
	return result, err
}

// awaited is what has become of an attempt at a worker: what it has told of the end, a result without that, an error,
// or that the program has begun.
type awaited struct {
	told   *wire.Ended
	result run.Result
	err    error
	begun  bool
}

// await follows what a worker tells until the attempt's end, which also comes when the worker is lost, or until its
// program has begun.
func (x *execution) await(ctx context.Context, l *lease, far *farAPI, begins bool) awaited {
	tick := time.NewTicker(look)
	defer tick.Stop()
	waits := &waiting{run: x.run}
	defer waits.none()
	lending, stop := context.WithCancel(ctx)
	defer l.takeBack(ctx, stop)
	for done := ctx.Done(); ; {
		now := l.now()
		if err := x.enterRunning(now); err != nil {
			return awaited{err: err}
		}
		x.lend(lending, l, now.lent)
		if x.run.State() == api.Running {
			if err := errors.Join(far.open(ctx), x.keepTold(l)); err != nil || begins {
				return awaited{err: err, begun: err == nil}
			}
		}
		if now.ended != nil {
			return awaited{told: now.ended}
		}
		if why := x.whyLost(l, waits, now); why != "" {
			result, err := x.lost(ctx, l, why)
			return awaited{result: result, err: err}
		}
		select {
		case <-l.news:
		case <-tick.C:
		case <-done:
			done = nil
			if letGo(ctx) {
				return awaited{err: runtime.ErrDetach}
			}
			x.f.registry.find(l.Worker).put("cancel/"+l.ID, wire.Order{Cancel: cancelOf(l, context.Cause(ctx))})
		case <-x.f.process.Life.Done(): // the next process goes on with the wish to cancel
			return awaited{err: runtime.ErrDetach}
		}
	}
}

// enterRunning notes in the record that the program runs, when the worker has told it.
func (x *execution) enterRunning(now told) error {
	tells := now.running
	if tells == nil && now.ended != nil && now.ended.StartedAt != nil {
		tells = &now.ended.Progress
	}
	if tells != nil && x.run.State() != api.Running {
		x.note(*tells)
		x.f.registry.images.note(x.run.Record.Worker, x.run.Unit)
		if err := x.run.Enter(api.Running, ""); err != nil {
			return err
		}
	}
	if x.run.State() == api.Running {
		x.lease.enter()
	}
	return nil
}

// note takes what a worker tells of an attempt into the record.
func (x *execution) note(p wire.Progress) {
	r := &x.run.Record
	if p.StartedAt != nil {
		started := p.StartedAt.UTC()
		if now := time.Now().UTC(); started.After(now) || now.Sub(started) > x.run.Limits.Timeout+time.Hour {
			started = now // their clocks differ
		}
		r.StartedAt = &started
	}
	r.Image = api.ImageRef{Ref: run.Bounded(p.Image.Ref, run.MaxMessage), ID: run.Bounded(p.Image.ID, run.MaxType)}
	if p.Container != nil {
		own := *p.Container
		own.ID = run.Bounded(own.ID, run.MaxType)
		r.Container = &own
	}
	r.Timings.Build, r.Timings.Create, r.Timings.Start = p.Timings.Build, p.Timings.Create, p.Timings.Start
	r.Timings.Run, r.Timings.Collect = p.Timings.Run, p.Timings.Collect
	r.Usage, r.Log = p.Usage, p.Log
	r.AgentSession = run.Bounded(p.Agent.Session, run.MaxMessage)
	r.AgentUsage, r.CostUSD = p.Agent.Usage, p.Agent.CostUSD
	if len(r.AgentUsage)+len(r.CostUSD) > run.MaxMessage {
		r.AgentUsage, r.CostUSD = nil, ""
	}
	r.Egress = p.Egress[:min(len(p.Egress), egress.MaxRows)]
	for i := range r.Egress {
		r.Egress[i].Host = x.run.Masked(run.Bounded(r.Egress[i].Host, run.MaxType))
	}
}

// overtime is how much longer than its time a run may take at a worker that is there, before that counts as lost.
const overtime = 5 * time.Minute

// whyLost says why an attempt won't end by itself any more; "": it may.
func (x *execution) whyLost(l *lease, waits *waiting, now told) string {
	if now.unknown {
		return "its worker " + l.Worker + " doesn't know it any more"
	}
	switch x.f.registry.presence(l.Worker) {
	case lost:
		return "its worker " + l.Worker + " is away, or was removed"
	case away:
		waits.forWorker(l.Worker)
	default:
		waits.as(now.waits)
	}
	started := x.run.Record.StartedAt
	if x.run.State() == api.Running && started != nil && time.Since(*started) > x.run.Limits.Timeout+overtime {
		return "its worker " + l.Worker + " doesn't end it, though its time is up"
	}
	return ""
}

// lost is the end of an attempt whose worker is lost. What may have had an effect isn't tried again.
func (x *execution) lost(ctx context.Context, l *lease, why string) (run.Result, error) {
	if err := x.loseSession(l); err != nil {
		return run.Result{}, err
	}
	x.void(l)
	x.f.lostAttempts.Add(1)
	x.f.logger.Warn("worker lost a run", "run", x.run.ID, "attempt", x.run.Attempt, "worker", l.Worker)
	if ctx.Err() != nil {
		return run.Stopped(nil, context.Cause(ctx)), nil //nolint:nilerr // which says why
	}
	failure := api.RunError{
		Category: api.CategoryTransient, Kind: api.KindWorkerLost, Message: "the attempt is lost: " + why,
	}
	if x.run.Unit.HasEffects() || x.run.Session != nil { // its program has been told
		failure.Category = api.CategoryPermanent
		failure.Message = fmt.Sprintf("nobody knows whether it was done: %s", why)
		failure.Hint = "look at what it may have changed; `aod rerun " + x.run.ID + "` does it again"
	}
	return run.Result{State: api.Failed, Outcome: api.SystemError, Failure: &failure}, nil
}

// void has a lease be good no more, and the worker remove what it has of it.
func (x *execution) void(l *lease) {
	x.f.leases.drop(l)
	w := x.f.registry.find(l.Worker)
	w.drop("cancel/" + l.ID)
	if l.now().ended == nil {
		w.put("void/"+l.ID, wire.Order{Void: l.ID})
	}
	l.lead()
	l.enter()
	l.settle()
}

// Settle implements run.Execution: the worker's word is stored by then.
func (x *execution) Settle(ctx context.Context) {
	if x.lease == nil {
		x.local.Settle(ctx)
		return
	}
	x.lease.settle()
}

// Discard implements run.Execution.
func (x *execution) Discard(ctx context.Context) {
	if x.lease == nil {
		x.local.Discard(ctx)
	}
}

// goneTime is how long a run waits until nothing of it is left at its worker, where the next one of its unit is to have
// the container.
const goneTime = 2 * time.Second

// Remove implements run.Execution. A worker removes what it has by itself.
func (x *execution) Remove(ctx context.Context) error {
	if l := x.lease; l != nil {
		l.settle()
		for end := time.Now().Add(goneTime); x.Shares() && !l.isGone() && time.Now().Before(end); {
			select {
			case <-l.news:
			case <-time.After(look):
			}
		}
		x.void(l)
	}
	if x.saved.Lease.ID != "" && !x.saved.Here {
		return nil
	}
	return x.local.Remove(ctx)
}

// Release implements run.Execution.
func (x *execution) Release() { x.local.Release() }

// Shares implements run.Sharer.
func (x *execution) Shares() bool {
	if x.lease == nil {
		sharer, is := x.local.(run.Sharer)
		return is && sharer.Shares()
	}
	ended := x.lease.now().ended
	return ended != nil && ended.Shares && !pause.Over(x.f.registry.gone(x.lease.Worker))
}

// cancelOf asks a worker for the end of a run.
func cancelOf(l *lease, cause error) *wire.Cancel {
	c := &wire.Cancel{Lease: l.ID}
	switch {
	case errors.Is(cause, run.ErrDeadline):
		c.CallerTime = true
	case errors.Is(cause, run.ErrCallerEnded):
		c.Caller = true
	case cause != nil && !errors.Is(cause, context.Canceled):
		c.Reason = run.Bounded(cause.Error(), run.MaxMessage)
	}
	return c
}

// waiting is what others see that a run at a worker waits for.
type waiting struct {
	run  *run.Run
	what string
	over func()
}

func (w *waiting) none() { w.set("", "", "") }

func (w *waiting) forWorker(name string) {
	w.set("worker", "worker", "its worker "+name+" doesn't answer; what runs there goes on")
}

// as is what the worker tells.
func (w *waiting) as(told *api.Waiting) {
	if told == nil {
		w.none()
		return
	}
	w.set(told.Reason, run.Bounded(told.Reason, run.MaxType), run.Bounded(told.Message, run.MaxMessage))
}

func (w *waiting) set(what, reason, message string) {
	if what == w.what {
		return
	}
	if w.over != nil {
		w.over()
		w.over = nil
	}
	if w.what = what; what != "" {
		w.over = w.run.WaitFor(reason, message)
	}
}
