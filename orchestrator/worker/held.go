package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// held is an attempt that this worker has accepted. One goroutine, that of drive, carries it out.
type held struct {
	worker *Worker
	run    *run.Run
	lines  *lines
	talk   talk
	report *reporter

	life   context.Context //nolint:containedctx // of the attempt in this process
	end    context.CancelCauseFunc
	wanted context.Context //nolint:containedctx // ends when nobody wants to know how it ends, or with the process
	reject context.CancelCauseFunc
	voided atomic.Bool
	egress egress.Tally
	over   chan struct{} // closed when this process has nothing more to do with it
	known  func()        // is called when its kind knows which containers it has, or it is over
	knows  chan struct{} // closed by that

	mu    sync.Mutex
	entry entry
	early map[string]*wire.Cancel // of leases that may be its own: the answer to its acceptance is still on its way
}

func newHeld(w *Worker, e entry) *held {
	h := &held{worker: w, entry: e, over: make(chan struct{}), knows: make(chan struct{})}
	h.known = sync.OnceFunc(func() { close(h.knows) })
	h.life, h.end = context.WithCancelCause(w.life)
	h.wanted, h.reject = context.WithCancelCause(w.life)
	return h
}

// lease returns the id of the lease; "": there is none yet.
func (h *held) lease() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.entry.Assignment == nil {
		return ""
	}
	return h.entry.Assignment.Lease
}

func (h *held) runID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.entry.Assignment == nil {
		return ""
	}
	return h.entry.Assignment.Run
}

// change changes what the journal has, and returns when that is on the disk, however long that takes, or
// runtime.ErrDetach at the end of the process.
func (h *held) change(do func(*entry)) error {
	h.mu.Lock()
	do(&h.entry)
	h.mu.Unlock()
	err := h.worker.link.repeat(h.worker.life, "write the journal", func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.worker.journal.write(h.entry)
	})
	if err != nil && h.leaves() {
		return runtime.ErrDetach
	}
	return err
}

func (h *held) now() entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.entry
}

// void ends an attempt that isn't this worker's any more: what there is of it is removed, and nothing is told.
func (h *held) void() {
	h.voided.Store(true)
	h.end(errVoid)
	h.reject(errVoid)
}

// leaves reports whether this process lets go of the attempt.
func (h *held) leaves() bool { return h.worker.life.Err() != nil }

// mayCancel has an attempt that has no lease yet end at once, if that is its lease.
func (h *held) mayCancel(c *wire.Cancel) {
	h.mu.Lock()
	has := h.entry.Assignment != nil
	if !has {
		if h.early == nil {
			h.early = map[string]*wire.Cancel{}
		}
		h.early[c.Lease] = c
	}
	h.mu.Unlock()
	if has && h.lease() == c.Lease {
		h.cancelBy(c)
	}
}

// cancelBy ends an attempt as the server asks. A process that comes later finds the wish.
func (h *held) cancelBy(c *wire.Cancel) {
	if err := h.change(func(e *entry) { e.Cancel = c }); err != nil {
		h.worker.logger.Error("wish to cancel not stored", "run", c.Lease, fault.LogAttr(err))
	}
	h.end(causeOf(c))
}

// causeOf is why the server wants a run to end.
func causeOf(c *wire.Cancel) error {
	switch {
	case c == nil:
		return nil
	case c.CallerTime:
		return run.ErrDeadline
	case c.Caller:
		return run.ErrCallerEnded
	}
	return run.Cancelled(c.Reason)
}

// drive carries an attempt out, from its acceptance until nothing is left of it here.
func (h *held) drive() {
	defer close(h.over)
	defer h.known()
	defer h.end(nil)
	defer h.reject(nil)
	if h.now().Assignment == nil {
		if err := h.accept(); err != nil {
			h.forget(err)
			return
		}
	}
	h.awaitOthers()
	if err := h.worker.link.repeat(h.worker.life, "prepare", h.prepare); err != nil {
		h.leave(err)
		return
	}
	defer h.closeSpools()
	reporting, stop := context.WithCancel(context.WithoutCancel(h.life))
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { h.report.run(reporting) })
	defer beside.Wait()
	defer stop()
	if err := h.carryOut(); err != nil {
		h.leave(err)
	}
}

func (h *held) closeSpools() {
	h.lines.close()
	if h.talk.said != nil {
		h.talk.said.close()
	}
}

// accept asks for the lease of the offer.
func (h *held) accept() error {
	e := h.now()
	if err := h.worker.journal.write(e); err != nil {
		return err
	}
	var a wire.Assignment
	err := h.worker.link.repeat(h.life, "accept", func() error {
		return h.worker.link.call(h.life, wire.Accept, wire.Acceptance{Offer: e.Offer, Nonce: e.Nonce}, &a)
	})
	if err != nil {
		return err
	}
	h.take(&a)
	return nil
}

// take takes the assignment. It is in the journal when the attempt begins: until then the same acceptance again gets it
// again.
func (h *held) take(a *wire.Assignment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := &h.entry
	e.Offer, e.Assignment = "", a
	if early := h.early[a.Lease]; early != nil {
		e.Cancel = early
	}
	if a.Left > 0 {
		e.Deadline = time.Now().Add(a.Left)
	}
}

// forget gives up an offer that didn't become a lease. One that may have is accepted again by the next process.
func (h *held) forget(err error) {
	if h.leaves() {
		return
	}
	if !errors.Is(err, errVoid) {
		h.worker.logger.Warn("offer not accepted", fault.LogAttr(err))
	}
	if err := h.worker.journal.remove(h.now()); err != nil {
		h.worker.logger.Error("journal not written", fault.LogAttr(err))
	}
}

// awaitOthers waits until nothing is left here of earlier attempts of the run, and earlier turns of its session: the
// server wants this one.
func (h *held) awaitOthers() {
	for _, other := range h.worker.all() {
		if other != h && other.isBefore(h) {
			other.void()
			<-other.over
		}
	}
	h.worker.awaitRest(h.sessionID())
}

// isBefore reports whether an attempt comes before another one, of its run or of its session.
func (h *held) isBefore(other *held) bool {
	a, b := h.now().Assignment, other.now().Assignment
	switch {
	case a == nil || b == nil:
		return false
	case a.Run == b.Run:
		return a.Attempt < b.Attempt
	}
	return h.sessionID() != "" && h.sessionID() == other.sessionID() && a.Session.Turn < b.Session.Turn
}

// prepare has the attempt be told of, and its run made.
func (h *held) prepare() error {
	a := h.now().Assignment
	dir := filepath.Join(h.worker.opts.Home, "runs", a.Lease)
	var err error
	if h.lines, err = openLines(filepath.Join(dir, "lines")); err != nil {
		return err
	}
	h.report = newReporter(h)
	if err := h.makeRun(dir); err != nil {
		return err
	}
	if err := h.giveSession(); err != nil {
		return err
	}
	h.run.LedBy(host{noServices{}, h}, nil)
	if h.run.Record.StartedAt != nil && !h.now().Told { // an earlier process may have ended before it told
		h.report.running()
	}
	return nil
}

// makeRun makes the run of the assignment, as far as an earlier process has led it.
func (h *held) makeRun(dir string) error {
	a := h.now().Assignment
	payload, err := contract.Decode(a.Input, int64(len(a.Input))+1)
	if err != nil {
		return err
	}
	u := &unit.Unit{Name: a.Unit.Name, Version: a.Unit.Version}
	r := run.New(a.Run, run.Request{Unit: u, Input: payload}, run.Input{Payload: payload}, a.Limits)
	r.Dir, r.Attempt, r.Limits, r.Durable, r.Grants = dir, a.Attempt, a.Limits, true, a.Grants
	r.Start, r.Project = a.Start, a.Project
	r.Handoffs = handoff.Limits{ResultBytes: a.Limits.ResultBytes}
	r.Lineage = run.Lineage{
		Parent: a.Parent, Root: a.Root, Path: a.Path, Deadline: h.now().Deadline, Tree: handoff.NewTree(),
	}
	if e := h.now(); e.Record != nil {
		r.Record, r.Saved = *e.Record, e.Saved
		h.egress.Restore(r.Record.Egress)
	}
	h.run = r
	if a.Talk {
		r.Extra = newFarTalk(h)
	}
	return nil
}

// fetch brings the unit and the input files.
func (h *held) fetch(ctx context.Context) error {
	a, link := h.now().Assignment, h.worker.link
	return link.repeat(ctx, "fetch", func() error {
		u, err := h.worker.units.Take(ctx, a.Unit.Name, a.Unit.Version,
			func(ctx context.Context) (io.ReadCloser, error) { return h.open(ctx, wire.Unit) })
		if err != nil {
			return err
		}
		h.run.Unit = govern(*u, a.Unit)
		if len(a.Unit.Secrets) > 0 && h.run.Secrets == nil { // in memory alone: a process that comes later asks again
			if err := link.get(ctx, leasePath(a.Lease, wire.Secrets), &h.run.Secrets); err != nil {
				return err
			}
		}
		h.worker.recent.note(h.run.Unit)
		if err := (carrier{h}).fetchInputs(ctx, *a); err != nil {
			return err
		}
		if err := (carrier{h}).fetchSession(ctx); err != nil {
			return err
		}
		return carrier{h}.fetchProject(ctx)
	})
}

// open returns files of the lease as the server packs them.
func (h *held) open(ctx context.Context, part string) (io.ReadCloser, error) {
	link := h.worker.link
	r, err := link.request(ctx, http.MethodGet, leasePath(h.lease(), part), nil)
	if err != nil {
		return nil, err
	}
	response, err := link.do(link.files, r)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// govern gives a unit what the server has for it.
func govern(u unit.Unit, as wire.Of) *unit.Unit {
	p := &u.Policy
	p.Network, p.Writable, p.Isolation, p.Env = as.Network, as.Writable, as.Isolation, as.Env
	p.ReadWrite = as.ReadWrite
	p.Models, p.Upstreams, p.Warm, p.Reuse = as.Models, as.Upstreams, as.Warm, as.Reuse
	p.Secrets, p.Refusal = as.Secrets, nil
	p.Bounds = unit.Bounds{BuildNetwork: as.BuildNetwork, NoFetch: as.NoFetch, ImageBytes: as.ImageBytes}
	p.Egress, _ = outside.ParseList(as.Egress) // what isn't a host here is reached by nobody
	if as.EgressBounded {
		most, _ := outside.ParseList(as.EgressCap)
		p.Bounds.Egress = append(outside.List{}, most...) // which bounds, also where it is empty
	}
	if u.Source = unit.FromDirectory; as.Upload {
		u.Source = unit.FromUpload
	}
	return &u
}

// carryOut makes the attempt, tells how it ended, and removes what is left of it. Its error is runtime.ErrDetach where
// this process lets go of it.
func (h *held) carryOut() error {
	ctx, stop := h.run.Lineage.Bound(h.life)
	defer stop()
	if asked := causeOf(h.now().Cancel); asked != nil {
		h.end(asked)
	}
	missing := h.fetch(ctx)
	execution := h.worker.opts.Kind.Execution(h.run)
	h.known()
	err := error(nil)
	if h.now().Ended == nil && !h.voided.Load() {
		err = h.attempt(ctx, execution, missing)
	}
	if err == nil {
		err = h.tell()
	}
	if err != nil {
		execution.Release()
		return err
	}
	execution.Settle(h.worker.life)
	return h.remove(execution)
}

// attempt makes the attempt, or goes on with it, and stores how it ended. Something may be missing for that.
func (h *held) attempt(ctx context.Context, execution run.Execution, missing error) (err error) {
	result, err := run.Result{}, missing
	if err == nil {
		result, err = h.begin(ctx, execution)
	}
	switch {
	case h.leaves() || errors.Is(err, runtime.ErrDetach):
		return runtime.ErrDetach
	case h.voided.Load():
		return nil
	case err != nil:
		h.worker.logger.Warn("attempt ended with a fault", "run", h.run.ID, fault.LogAttr(err))
		result = run.Fault(ctx, err)
	}
	sharer, is := execution.(run.Sharer)
	ended := h.endOf(result, is && sharer.Shares())
	h.mu.Lock()
	h.entry.Ended = ended
	h.mu.Unlock()
	return h.run.End(result)
}

func (h *held) begin(ctx context.Context, execution run.Execution) (run.Result, error) {
	switch h.run.State() {
	case api.Running:
		return execution.Resume(ctx)
	case api.Starting: // an earlier process may have lent its slot
		if err := h.regain(ctx); err != nil {
			return run.Result{}, err
		}
		return execution.Resume(ctx)
	}
	return execution.Attempt(ctx)
}

// endOf is what the server is told of the end.
func (h *held) endOf(result run.Result, shares bool) *wire.Ended {
	return &wire.Ended{
		Progress: h.progress(), State: result.State, Outcome: result.Outcome, ExitCode: result.ExitCode,
		Failure: result.Failure, Output: result.Output, Files: result.Files, Shares: shares,
		Changes: h.run.Record.Changes != nil, Session: h.sessionEnd(),
	}
}

// progress is what the record has that this worker alone knows.
func (h *held) progress() wire.Progress {
	r := h.run.Record
	return wire.Progress{
		StartedAt: r.StartedAt, Image: r.Image, Container: r.Container, Timings: r.Timings, Usage: r.Usage, Log: r.Log,
		Warnings: r.Warnings, Egress: h.egress.Rows(),
		Agent: wire.Agent{Session: r.AgentSession, Usage: r.AgentUsage, CostUSD: r.CostUSD},
	}
}

// tell has the server store how the attempt ended, with its files and the log before. That the server doesn't want it
// is no error.
func (h *held) tell() error {
	if h.now().Told || h.voided.Load() {
		return nil
	}
	if err := h.leaveSession(); err != nil {
		return err
	}
	err := h.tellEnd(*h.now().Ended)
	if err != nil && !errors.Is(err, errVoid) && !h.leaves() {
		h.worker.logger.Error("the server doesn't take how a run ended", "run", h.run.ID, fault.LogAttr(err))
		_ = h.tellEnd(*h.endOf(run.Fault(h.worker.life, err), false)) // what is refused again is lost there
	}
	if h.leaves() {
		return runtime.ErrDetach
	}
	return h.change(func(e *entry) { e.Told = true })
}

// tellEnd repeats to tell an end until the server has it, or refuses it for good. A wish to cancel comes too late.
func (h *held) tellEnd(ended wire.Ended) error {
	ctx, link := h.wanted, h.worker.link
	return link.repeat(ctx, "tell the end", func() error {
		if h.talk.said != nil {
			h.report.makeSure()
		}
		if err := h.report.flush(ctx); err != nil {
			return err
		}
		ended.Lines = h.lines.told()
		if h.talk.said != nil {
			ended.Said = h.talk.said.told()
		}
		if err := (carrier{h}).send(ctx, ended.Files); err != nil {
			return err
		}
		if ended.Changes {
			if err := (carrier{h}).sendChanges(ctx); err != nil {
				return err
			}
		}
		if err := h.sendLeft(ctx, &ended); err != nil {
			return err
		}
		return link.call(ctx, leasePath(h.lease(), wire.End), ended, nil)
	})
}

// remove removes what is left of the attempt.
func (h *held) remove(execution run.Execution) error {
	ctx := context.WithoutCancel(h.worker.life)
	if h.voided.Load() && h.run.Record.Outcome == "" {
		execution.Discard(ctx)
	} else if err := h.run.Enter(api.Cleanup, ""); err != nil {
		return err
	}
	err := h.worker.link.repeat(h.worker.life, "remove containers", func() error { return execution.Remove(ctx) })
	if err != nil {
		return err
	}
	if err := safefs.RemoveTree(h.run.Dir); err != nil {
		h.worker.logger.Warn("directory of a run not removed", "run", h.run.ID, fault.LogAttr(err))
	}
	if err := h.worker.journal.remove(h.now()); err != nil {
		return err
	}
	if ended := h.now().Ended; ended != nil && ended.Shares && !h.voided.Load() {
		_ = h.worker.link.call(h.worker.life, leasePath(h.lease(), wire.Gone), struct{}{}, nil) // it waits only so long
	}
	return nil
}

// leave notes why this process goes on no more with an attempt: the next one does.
func (h *held) leave(err error) {
	if !errors.Is(err, runtime.ErrDetach) {
		h.worker.logger.Error("run is left to the next start", "lease", h.lease(), fault.LogAttr(err))
	}
}

// save keeps the record as it is now.
func (h *held) save() error {
	saved, err := json.Marshal(h.run.Saved)
	if err != nil {
		return err
	}
	record := h.run.Record
	record.Input, record.Egress = nil, h.egress.Rows()
	if h.talk.said == nil {
		return h.change(func(e *entry) { e.Record, e.Saved = &record, saved })
	}
	if err := h.talk.said.sync(); err != nil {
		return err
	}
	kept := int64(0)
	err = h.change(func(e *entry) {
		kept = h.talk.count
		e.Record, e.Saved, e.Session, e.Said = &record, saved, h.talk.saved, kept
	})
	if err == nil {
		h.talk.said.tells(kept)
		h.report.wake()
	}
	return err
}
