package flow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// host implements flow.Host: calls are child runs, steps and questions are the run's.
type host struct {
	*execution
	calls  run.ChildRuns
	broker *handoff.Broker
	files  *files
}

func (x *execution) newHost() *host {
	h := &host{execution: x, calls: x.Calls(), files: &files{dir: x.StateDir(), durable: x.Durable}}
	h.broker = x.Broker(h.calls, x.logger)
	return h
}

// Rehearsed is the Request.Extra of a run that is a test: a Rehearsal takes the place of units
// and people, and Walked learns where the walk goes.
type Rehearsed struct {
	Rehearsal *flow.Rehearsal
	Walked    *flow.Walked
}

// rehearsed returns the host of the walk.
func (h *host) rehearsed() flow.Host {
	if r, ok := h.Extra.(Rehearsed); ok {
		return r.Rehearsal.Host(h, r.Walked)
	}
	return h
}

// Keep implements flow.Host.
func (h *host) Keep(_ context.Context, s flow.Step) error { return h.KeepStep(s) }

// Ask implements flow.Host.
func (h *host) Ask(ctx context.Context, q flow.Question) (flow.Answer, error) {
	asked := run.Question{
		Address: q.Address, Text: q.Text, Form: q.Form, Answers: q.Answers, Approvers: q.Approvers,
		Until: q.Until, Alone: q.Alone,
	}
	if len(q.Show) > 0 {
		var err error
		if asked.Show, err = flow.Encode(q.Show); err != nil {
			return flow.Answer{}, err
		}
	}
	answer, err := h.execution.Ask(ctx, asked)
	var denied *run.Denied
	if errors.As(err, &denied) {
		return flow.Answer{}, &flow.CallError{Refused: true, Failure: flow.Failure{
			Node: q.Address, Category: permanent, Kind: "unanswered", Message: denied.Reason, Hint: denied.Hint,
		}}
	}
	return flow.Answer(answer), err
}

// Items implements flow.Host.
func (h *host) Items(address string, items int) {
	h.Tell(run.Event{Data: api.NodeEvent{Address: address, Try: 1, State: api.OpenStep, Items: items}})
}

// Call implements flow.Host.
func (h *host) Call(ctx context.Context, c flow.Call) (flow.Result, error) {
	u, err := h.broker.Unit(ctx, c.Unit)
	if err != nil {
		return flow.Result{}, h.notMade(ctx, c, err)
	}
	cached, err := h.cachedCall(u, c)
	if err != nil {
		return flow.Result{}, err
	}
	if result, ok := h.earlier(ctx, u, cached); ok {
		return result, nil
	}
	result, err := h.make(ctx, u, c)
	if err == nil && cached.Age > 0 {
		h.Remember(ctx, cached, result.Run)
	}
	return result, err
}

// make has the call made, and returns what it gave.
func (h *host) make(ctx context.Context, u *handoff.Unit, c flow.Call) (flow.Result, error) {
	asked, err := h.request(c)
	if err != nil {
		return flow.Result{}, h.notMade(ctx, c, err)
	}
	id, err := h.start(ctx, asked)
	closeAll(asked)
	if err != nil {
		return flow.Result{}, h.notMade(ctx, c, err)
	}
	result, err := h.await(ctx, id)
	switch {
	case err != nil:
		return flow.Result{}, err
	case !result.Success:
		return flow.Result{}, hasFailed(c, result)
	}
	output, err := h.output(ctx, u.Contract.Output, result)
	return flow.Result{Run: id, Output: output, Action: result.Action}, err
}

// request returns the request for a call, with its files opened.
func (h *host) request(c flow.Call) (handoff.Request, error) {
	var names flow.Names
	input, err := names.Plain(c.Input)
	if err != nil {
		return handoff.Request{}, err
	}
	args, err := contract.NewPayload(input)
	if err != nil {
		return handoff.Request{}, err
	}
	asked := handoff.Request{Target: c.Unit, Args: args.JSON(), Key: c.Key, Step: c.Address}
	asked.Files, err = h.files.open(&names)
	return asked, err
}

func closeAll(asked handoff.Request) {
	for _, file := range asked.Files {
		_ = file.Close() // read only
	}
}

// How long a call waits before it asks again for a place in a queue that is full, and how long
// in all for a server that has none to give at all.
const (
	firstPause = 10 * time.Millisecond
	longPause  = time.Second
	patience   = 10 * time.Second
)

// start has the call made. A queue that is full is waited for: there is a place when what goes
// on has ended.
func (h *host) start(ctx context.Context, asked handoff.Request) (id string, err error) {
	asking := time.Now()
	for wait := firstPause; ; wait = min(2*wait, longPause) {
		id, err = h.broker.Start(ctx, asked)
		again := isFull(err) || fault.Is(err, fault.Unavailable) && time.Since(asking) < patience
		if !again {
			return id, err
		}
		if cause := pause.For(ctx, wait); cause != nil {
			return "", cause
		}
		for _, file := range asked.Files {
			if _, err := file.Seek(0, 0); err != nil {
				return "", run.StorageFault(err)
			}
		}
	}
}

// isFull reports whether a call may be made later, as far as the rules go.
func isFull(err error) bool {
	var refusal *handoff.Refusal
	return fault.Is(err, fault.Busy) && !errors.As(err, &refusal)
}

// await returns the call when it has ended. When ctx ends before, the call is cancelled, unless
// the next process goes on with it.
func (h *host) await(ctx context.Context, id string) (handoff.Result, error) {
	result, err := h.broker.Await(ctx, id)
	if err == nil && result.Ended {
		return result, nil
	}
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, runtime.ErrDetach) {
		return result, errors.Join(cause, err)
	}
	result, err = h.broker.Cancel(context.WithoutCancel(ctx), id, cause.Error())
	if err == nil && result.Ended && result.Success {
		return result, nil // it came first
	}
	return result, cause
}

// notMade is the error of a call that was not made: a *flow.CallError, or the reason why this
// process has to stop.
func (h *host) notMade(ctx context.Context, c flow.Call, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, runtime.ErrDetach) {
		return err
	}
	public := fault.Public(err)
	category := run.CategoryOf(public.Kind)
	failure := flow.Failure{
		Node: c.Address, Category: string(category), Kind: public.Kind.String(),
		Message: public.Msg, Hint: public.Hint, Findings: public.Findings,
	}
	var refusal *handoff.Refusal
	refused := errors.As(err, &refusal)
	if refused && refusal.Rule == handoff.RuleDeadline {
		return h.timeUp()
	}
	if refused {
		failure.Category, failure.Kind = permanent, string(refusal.Rule)
	}
	return &flow.CallError{Refused: refused || failure.Category == permanent, Failure: failure}
}

// hasFailed is the error of a call that has failed.
func hasFailed(c flow.Call, result handoff.Result) error {
	failure := flow.Failure{Node: c.Address, Kind: result.State, Message: "it ended " + result.State}
	if e := result.Error; e != nil {
		failure = flow.Failure{
			Node: c.Address, Category: e.Category, Kind: e.Kind, Type: e.Type, Message: e.Message, Hint: e.Hint,
			Findings: e.Findings,
		}
	}
	return &flow.CallError{Run: result.ID, Failure: failure}
}

// output returns what a call gave: each file reference of its contract is a flow.File, whose
// bytes are kept here.
func (h *host) output(ctx context.Context, schema *contract.Schema, result handoff.Result) (any, error) {
	payload, err := contract.Decode(result.Output, int64(max(len(result.Output), 1)))
	if err != nil {
		return nil, err
	}
	given := map[string]handoff.Output{}
	for _, file := range result.Files {
		given[file.Name] = file
	}
	found := map[string]flow.File{}
	var refs []contract.FileRef
	for _, ref := range schema.FileRefs(payload) {
		file, there := given[ref.Name]
		if ref.Err != nil || !there {
			continue // of a version with another contract
		}
		refs = append(refs, ref)
		found[ref.Name] = flow.File{Name: file.Name, SizeBytes: file.SizeBytes, SHA256: file.SHA256}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if err := h.files.add(ctx, given[name].Path, found[name]); err != nil {
			return nil, err
		}
	}
	if err := h.files.sync(len(found)); err != nil {
		return nil, err
	}
	return flow.Values(payload.Replaced(refs, func(ref contract.FileRef) any { return found[ref.Name] }))
}
