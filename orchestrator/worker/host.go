package worker

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/trace"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// host implements run.Host for an attempt: what is to be safe is in the journal, what is to be known goes to the
// server.
type host struct {
	noServices
	*held
}

// Save implements run.Host. That the program runs the server may know before the journal does: a process that comes
// later looks for it anyway.
func (h host) Save(transition api.Transition) error {
	if transition.State == api.Running {
		h.report.running()
	}
	return h.save()
}

// Hold implements run.Host.
func (h host) Hold(transition api.Transition) error {
	if transition.State == api.Running {
		h.report.running()
	}
	return nil
}

// Note implements run.Host. Warnings are in the record, which the server gets in the end.
func (h host) Note(event run.Event) {
	switch {
	case event.Log != nil:
		h.lines.add(*event.Log)
		h.report.wake()
	case event.Build != nil:
		h.report.built(*event.Build)
	}
}

// Calls implements run.Services.
func (h host) Calls() run.ChildRuns { return calls{held: h.held} }

// Waiting implements run.Services.
func (h host) Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// Aside implements run.Services: the server gives the slot to others until wait is over, and says when the run has it
// again.
func (h host) Aside(ctx context.Context, wait func()) error {
	link, at := h.worker.link, leasePath(h.lease(), wire.Slot)
	_ = link.call(ctx, at, wire.Loan{Lent: true}, nil) // whether it came isn't known: the slot is asked for in any case
	wait()
	return h.regain(ctx)
}

// regain waits until the run has its slot, of which the server knows best whether others have it.
func (h *held) regain(ctx context.Context) error {
	link, at := h.worker.link, leasePath(h.lease(), wire.Slot)
	err := link.repeat(ctx, "have the slot again", func() error { return link.call(ctx, at, wire.Loan{}, nil) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Logged implements run.Services.
func (h host) Logged() run.Lines { return h.lines.counts() }

// CancelRequest implements run.Services.
func (h host) CancelRequest() error { return causeOf(h.now().Cancel) }

// KeepSaved implements run.Services.
func (h host) KeepSaved() error { return h.save() }

// Span implements run.Services: a worker has no traces of its own.
func (host) Span(string, ...trace.SpanStartOption) trace.Span {
	return trace.SpanFromContext(context.Background())
}

// noServices are those of run.Host that kinds ask for who don't go to workers.
type noServices struct{}

var errNotHere = errors.New("a worker has no flows")

// KeepStep implements run.Host.
func (noServices) KeepStep(flow.Step) error { return errNotHere }

// WasTold implements run.Services.
func (noServices) WasTold(context.Context, run.Once) (bool, error) { return false, errNotHere }

// TellOnce implements run.Services.
func (noServices) TellOnce(context.Context, run.Once, api.EventData) error { return errNotHere }

// Steps implements run.Services.
func (noServices) Steps(context.Context) ([]flow.Step, error) { return nil, errNotHere }

// Earlier implements run.Services.
func (noServices) Earlier(context.Context, run.CachedCall) (handoff.Result, bool) {
	return handoff.Result{}, false
}

// Remember implements run.Services.
func (noServices) Remember(context.Context, run.CachedCall, string) {}
