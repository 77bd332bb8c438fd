package flow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

var errBecause = errors.New("because")

func TestAFlowIsWalked(t *testing.T) {
	b := newBench(t, oneCall)
	x := b.execution()
	got, err := x.Attempt(t.Context())
	if err != nil || got.Outcome != api.Success || got.State != api.Completed || string(got.Output) != `{"n":7}` {
		t.Fatalf("%+v %+v, %v", got, got.Failure, err)
	}
	if diff := cmp.Diff([]api.State{api.Starting, api.Running}, b.host.states); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a~1 done"}, rows(b.host.steps)); diff != "" {
		t.Error(diff)
	}
	call := b.calls.started[0]
	if call.Step != "a" || call.Key == "" || string(call.Args.JSON()) != `{"n":1}` || b.host.steps[0].Run != theCall {
		t.Errorf("call %+v, step %+v", call, b.host.steps[0])
	}
	if !errors.Is(b.calls.ended, run.ErrCallerEnded) || x.Record.StartedAt == nil || x.Record.Flow == nil || x.Record.Flow.Action != "done" {
		t.Errorf("its calls ended with %v, record %+v", b.calls.ended, x.Record)
	}
}

func TestAFlowThatCantEndWellStartsNothing(t *testing.T) {
	for name, c := range map[string]struct{ graph, says string }{
		"an input that its unit refuses":     {`{nodes: {a: {run: worker, with: {n: "text"}}}}`, "wants a number"},
		"an output that breaks its contract": {`{nodes: {a: {run: worker}}, output: {doc: 7}}`, "flow.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.graph)
			got := b.ends()
			if got.Outcome != api.StepFailed || got.State != api.Failed || got.Failure.Kind != kindInvalid || got.Failure.Category != api.CategoryPermanent {
				t.Fatalf("%+v %+v", got, got.Failure)
			}
			if !strings.Contains(got.Failure.Message, "nothing was started: ") || !strings.Contains(got.Failure.Message, c.says) || len(got.Failure.Findings) == 0 {
				t.Errorf("failure %+v", got.Failure)
			}
			if len(b.host.states)+len(b.host.steps)+len(b.calls.started) > 0 {
				t.Errorf("states %v, steps %v, %d calls", b.host.states, b.host.steps, len(b.calls.started))
			}
		})
	}
}

func TestAUnitThatIsNotThereMayNotBeNeeded(t *testing.T) {
	b := newBench(t, `{start: a, nodes: {a: {run: worker, next: {default: end, error: b}}, b: {run: nobody}}, output: {n: 1}}`)
	if got := b.ends(); got.Outcome != api.Success || len(b.calls.started) != 1 {
		t.Errorf("%+v %+v, %d calls", got, got.Failure, len(b.calls.started))
	}
}

func TestAUnitWithoutAGraphIsRefused(t *testing.T) {
	b := newBench(t, oneCall)
	b.unit.Definition = &capsule.Capsule{}
	for name, carry := range map[string]func(context.Context) (run.Result, error){"at once": b.execution().Attempt, "when it is resumed": b.resumed(0).Resume} {
		if _, err := carry(t.Context()); !fault.Is(err, fault.Input) || !strings.Contains(err.Error(), flow.FileName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNothingIsCalledBeforeTheStateIsStored(t *testing.T) {
	for _, state := range []api.State{api.Starting, api.Running} {
		b := newBench(t, oneCall)
		b.host.saveAt, b.host.broken = state, errBecause
		if _, err := b.execution().Attempt(t.Context()); !errors.Is(err, errBecause) || len(b.calls.started) > 0 {
			t.Errorf("%s: %v, %d calls", state, err, len(b.calls.started))
		}
	}
}

func TestAStepThatCantBeKeptEndsTheWalk(t *testing.T) {
	b := newBench(t, oneCall)
	b.host.broken = runtime.ErrDetach
	if got, err := b.execution().Attempt(t.Context()); !errors.Is(err, runtime.ErrDetach) || got.Outcome != "" {
		t.Errorf("at the end of the process: %+v, %v", got, err)
	}
	b.host.broken = errBecause
	if _, err := b.execution().Attempt(t.Context()); !errors.Is(err, errBecause) || b.calls.ended == nil {
		t.Errorf("by an error: %v, calls ended with %v", err, b.calls.ended)
	}
}

func TestAFlowIsResumed(t *testing.T) {
	const two = `{start: a, nodes: {a: {run: worker, set: {n: "${{ out.n }}"}, next: b}, b: {run: worker, with: {n: "${{ state.n }}"}, set: {m: "${{ out.n }}"}}}, output: {n: "${{ state.m }}"}}`
	b := newBench(t, two)
	b.ends()
	keys := []string{b.calls.started[0].Key, b.calls.started[1].Key}
	b.host.kept, b.calls.started, b.host.states = b.host.steps[:1], nil, nil
	got, err := b.resumed(time.Minute).Resume(t.Context())
	if err != nil || string(got.Output) != `{"n":7}` {
		t.Fatalf("%+v %+v, %v", got, got.Failure, err)
	}
	if len(b.calls.started) != 1 || b.calls.started[0].Step != "b" || b.calls.started[0].Key != keys[1] || keys[0] == keys[1] {
		t.Errorf("calls %+v, the keys were %q", b.calls.started, keys)
	}
	if len(b.host.states) > 0 {
		t.Errorf("it entered %v again", b.host.states)
	}
	x := b.execution() // it was accepted, and no more
	x.Record.StartedAt = new(time.Now())
	x.Record.Transitions = append(x.Record.Transitions, api.Transition{State: api.Starting})
	if got, err := x.Resume(t.Context()); err != nil || got.Outcome != api.Success || len(b.host.states) != 2 {
		t.Errorf("before it began: %+v, %v, states %v", got, err, b.host.states)
	}
}

func TestACancelRequestIsFoundByTheNextProcess(t *testing.T) {
	b := newBench(t, oneCall)
	b.host.cancelled = errBecause
	got, err := b.resumed(0).Resume(t.Context())
	if err != nil || got.Outcome != api.WasCancelled || !strings.Contains(got.Failure.Message, "because") || len(b.calls.started) > 0 {
		t.Errorf("%+v %+v, %v, %d calls", got, got.Failure, err, len(b.calls.started))
	}
}

// awaits returns when ctx ends, with the call as it stands then.
func awaits(ctx context.Context) (handoff.Result, error) {
	<-ctx.Done()
	return handoff.Result{ID: theCall, State: "running"}, nil
}

func TestAWalkIsBrokenOff(t *testing.T) {
	cases := map[string]struct {
		cause   error // nil: the time of the run
		outcome api.Outcome
		says    string
		reasons []string // with which the call is cancelled
	}{
		"at its time limit":          {nil, api.TimedOut, "its time limit", []string{run.ErrTimeout.Error()}},
		"at its caller's":            {run.ErrDeadline, api.TimedOut, "the run that called it", []string{run.ErrDeadline.Error()}},
		"when it is cancelled":       {errBecause, api.WasCancelled, "because", []string{"because"}},
		"when its process has ended": {runtime.ErrDetach, "", "", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, oneCall)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				b.calls.awaiting = func(ctx context.Context) (handoff.Result, error) {
					if c.cause != nil {
						cancel(c.cause)
					}
					return awaits(ctx)
				}
				got, err := b.resumed(0).Resume(ctx)
				if diff := cmp.Diff(c.reasons, b.calls.cancelled); diff != "" || len(b.host.steps) > 0 {
					t.Errorf("it kept %v, %s", rows(b.host.steps), diff)
				}
				if c.outcome == "" {
					if !errors.Is(err, runtime.ErrDetach) || got.Outcome != "" {
						t.Errorf("%+v, %v", got, err)
					}
					return
				}
				if err != nil || got.Outcome != c.outcome || !strings.Contains(got.Failure.Message, c.says) || b.calls.ended == nil || b.calls.ended.Error() != c.reasons[0] {
					t.Errorf("%+v %+v, %v, calls ended with %v", got, got.Failure, err, b.calls.ended)
				}
			})
		})
	}
}

func TestTheTimeOfARunBeganInTheProcessThatBeganIt(t *testing.T) {
	b := newBench(t, oneCall)
	b.calls.awaiting = awaits
	x := b.resumed(2 * time.Hour)
	x.Limits.Timeout = time.Hour
	got, err := x.Resume(t.Context())
	if err != nil || got.Outcome != api.TimedOut || !strings.Contains(got.Failure.Message, "1h0m0s") || !errors.Is(b.calls.ended, run.ErrTimeout) {
		t.Errorf("%+v %+v, %v, calls ended with %v", got, got.Failure, err, b.calls.ended)
	}
}

func TestWhatWaitsGoesOnInTheNextProcess(t *testing.T) {
	b := newBench(t, oneCall)
	admission, end := context.WithCancelCause(t.Context())
	b.host.admission = admission
	b.calls.awaiting = func(ctx context.Context) (handoff.Result, error) {
		end(runtime.ErrDetach)
		return awaits(ctx)
	}
	if got, err := b.execution().Attempt(t.Context()); !errors.Is(err, runtime.ErrDetach) || got.Outcome != "" || len(b.calls.cancelled) > 0 {
		t.Errorf("%+v, %v, cancelled %v", got, err, b.calls.cancelled)
	}
}

func TestAFlowThatWaitsForPeopleLeavesItsCallsAlone(t *testing.T) {
	b := newBench(t, `{nodes: {a: {ask: "Go?", answers: [yes], next: {yes: end}}}, output: {n: 1}}`)
	asks := &run.Suspended{}
	b.host.answer = func(run.Question) (run.Answer, error) { return run.Answer{}, asks }
	_, err := b.execution().Attempt(t.Context())
	var got *run.Suspended
	if !errors.As(err, &got) || got != asks || b.calls.ended != nil || !b.host.asked[0].Alone {
		t.Errorf("%v, calls ended with %v, asked %+v", err, b.calls.ended, b.host.asked)
	}
}

func TestATestOfAFlowTakesThePlaceOfItsUnits(t *testing.T) {
	b := newBench(t, oneCall)
	var walked flow.Walked
	played := map[string][]flow.Played{"a": {{Output: map[string]any{"n": int64(9)}}}}
	b.extra = Rehearsed{Rehearsal: &flow.Rehearsal{Nodes: played}, Walked: &walked}
	if got := b.ends(); string(got.Output) != `{"n":9}` || len(b.calls.started) > 0 {
		t.Errorf("%s after %d calls", got.Output, len(b.calls.started))
	}
	if diff := cmp.Diff([]string{"a"}, walked.Path()); diff != "" {
		t.Error(diff)
	}
}

func TestACallThatLearnsFirstThatTheTimeIsUp(t *testing.T) {
	for name, c := range map[string]struct {
		caller time.Duration // until its caller's deadline; 0: it has no caller
		says   string
	}{
		"of the run":                      {0, "its time limit"},
		"of its caller":                   {time.Minute, "the run that called it"},
		"of the run, before its caller's": {48 * time.Hour, "its time limit"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, `{start: a, nodes: {a: {run: worker, retry: 2, next: {default: b, error: b}}, b: {run: worker}}, output: {n: 1}}`)
			late := fault.New(fault.Deadline, "the time is up")
			b.calls.starting = func(int) error { return &handoff.Refusal{Rule: handoff.RuleDeadline, Fault: late} }
			x := b.execution()
			if c.caller > 0 {
				x.Lineage.Deadline = time.Now().Add(c.caller)
			}
			got, err := x.Attempt(t.Context())
			if err != nil || got.Outcome != api.TimedOut || got.State != api.Timeout || !strings.Contains(got.Failure.Message, c.says) {
				t.Errorf("%+v %+v, %v", got, got.Failure, err)
			}
			if len(b.host.steps) > 0 || len(b.calls.contents) != 1 {
				t.Errorf("it kept %v after %d calls", rows(b.host.steps), len(b.calls.contents))
			}
		})
	}
}
