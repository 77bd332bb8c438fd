package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

func TestACallIsBrokenOff(t *testing.T) {
	gone := make(chan struct{}, 100)
	var said atomic.Pointer[func()] // is called when the agent has said what it says
	lingers := func(text string) answer {
		return func(w http.ResponseWriter, r *http.Request, asked agenthttp.Request) {
			hangs(text, *said.Load())(w, r, asked)
			gone <- struct{}{}
		}
	}
	for _, where := range []struct{ name, said, more string }{
		{"before its answer", "", ""},
		{"in the middle of its answer", good[:20], ""},
		{"in the middle of its stream", "event: progress\ndata: {}\n\n", "  stream: true\n"},
		{"after the end of its stream", "event: final\ndata: " + good + "\n\n", "  stream: true\n"},
	} {
		a := newAgent(t, lingers(where.said), (*httptest.Server).Start)
		if where.more != "" {
			a.answers(with("Content-Type", "text/event-stream", a.says))
		}
		b := newBench(t, a.URL, where.more)
		for _, c := range []struct {
			name    string
			cause   error // nil: the run's own limit of time
			outcome api.Outcome
			says    string
		}{
			{"at its time limit", nil, api.TimedOut, "its time limit"},
			{"at its caller's", run.ErrDeadline, api.TimedOut, "the run that called it"},
			{"when it is cancelled", errBecause, api.WasCancelled, "because"},
			{"when its process ends", runtime.ErrDetach, "", ""},
		} {
			t.Run(where.name+", "+c.name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				end := func() {}
				if c.cause != nil {
					end = func() { cancel(c.cause) }
				}
				said.Store(&end)
				var got run.Result
				var err error
				message := c.says
				for limit := 50 * time.Millisecond; limit < time.Minute; limit *= 2 { // it may be over before the agent was asked
					before, x := a.requests(), b.execution()
					if c.cause == nil {
						x.Limits.Timeout, message = limit, fmt.Sprintf("after %v, %s", limit, c.says)
					}
					if got, err = x.Attempt(ctx); c.cause != nil || a.requests() > before {
						break
					}
				}
				<-gone // its connection is closed
				if c.outcome == "" {
					if !errors.Is(err, runtime.ErrDetach) {
						t.Errorf("%+v, %v", got, err)
					}
					return
				}
				if err != nil || got.Outcome != c.outcome || got.ExitCode != nil || !strings.Contains(got.Failure.Message, message) {
					t.Errorf("%+v %+v, %v", got, got.Failure, err)
				}
			})
		}
	}
}

func TestAnAnswerThatCameCounts(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	a := newAgent(t, says(200, good), (*httptest.Server).Start)
	b := newBench(t, a.URL, "")
	x := b.execution()
	got, err := x.Attempt(ctx)
	cancel(errBecause)
	if err != nil || got.Outcome != api.Success {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatCantBeStoredIsNotAsked(t *testing.T) {
	a := newAgent(t, says(200, good), (*httptest.Server).Start)
	b := newBench(t, a.URL, "")
	for _, state := range []api.State{api.Starting, api.Running} {
		b.host = alone{at: state, do: func() error { return errBecause }}
		if _, err := b.execution().Attempt(t.Context()); !errors.Is(err, errBecause) || a.requests() > 0 {
			t.Errorf("%s: %v, %d requests", state, err, a.requests())
		}
	}
}

// resumed makes the attempts of a run that an earlier process left.
func (b *harness) resumed(state api.State, cancelled error) *execution {
	x := b.execution()
	x.Record.State = state
	x.Record.Transitions = append(x.Record.Transitions, api.Transition{State: state})
	x.LedBy(alone{cancelled: cancelled}, nil)
	return x
}

func TestARunIsResumed(t *testing.T) {
	a := newAgent(t, says(200, good), (*httptest.Server).Start)
	b := newBench(t, a.URL, "")
	over, cancel := context.WithCancelCause(t.Context())
	cancel(run.ErrDeadline)
	for _, c := range []struct {
		name      string
		ctx       context.Context //nolint:containedctx // of one resumption
		state     api.State
		cancelled error
		outcome   api.Outcome
		requests  int
		says      string
	}{
		{"before the agent was asked", t.Context(), api.Starting, nil, api.Success, 1, ""},
		{"after that, when nobody knows what it did", t.Context(), api.Running, nil, api.SystemError, 0, "the server ended while the agent was at work"},
		{"when it is to be cancelled", t.Context(), api.Running, errBecause, api.WasCancelled, 0, "because"},
		{"when its time is over", over, api.Running, nil, api.TimedOut, 0, "the run that called it"},
		{"when its time is over and it is to be cancelled", over, api.Running, errBecause, api.WasCancelled, 0, "because"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := a.requests()
			x := b.resumed(c.state, c.cancelled)
			got, err := x.Resume(c.ctx)
			if err != nil || got.Outcome != c.outcome || got.Failure != nil && !strings.Contains(got.Failure.Message, c.says) || a.requests()-before != c.requests {
				t.Errorf("%+v %+v, %v after %d requests", got, got.Failure, err, a.requests()-before)
			}
			if c.outcome == api.SystemError && (got.Failure.Category != api.CategoryTransient || !strings.Contains(got.Failure.Hint, "request_id")) {
				t.Errorf("failure %+v", got.Failure)
			}
			x.Settle(c.ctx)
			x.Discard(c.ctx)
			if err := x.Remove(c.ctx); err != nil {
				t.Error(err)
			}
			x.Release()
		})
	}
	ending, detach := context.WithCancelCause(t.Context())
	detach(runtime.ErrDetach)
	if got, err := b.resumed(api.Running, nil).Resume(ending); !errors.Is(err, runtime.ErrDetach) {
		t.Errorf("when this process ends as well: %+v, %v", got, err)
	}
}

func TestWhatAnAgentIsAsked(t *testing.T) {
	a := newAgent(t, says(200, good), (*httptest.Server).Start)
	b := newBench(t, a.URL, "  task_type: COUNT\n  mode: DEMO\n  risk_tier: low\n  domain_id: d\nlimits: {timeout: 30s}\n")
	a.answers(says(200, strings.Replace(good, "WORDS", "COUNT", 1)))
	x := b.execution()
	x.Record.Metadata = map[string]string{"mode": "LIVE", "workflow_id": "w", "stage_id": "s", "user_id": "ada"}
	got, err := x.Attempt(t.Context())
	if err != nil || got.Outcome != api.Success {
		t.Fatalf("%+v %+v, %v", got, got.Failure, err)
	}
	asked, header := a.last()
	var left int
	if _, err := fmt.Sscanf(string(asked.Budgets), `{"timeout_ms":%d}`, &left); err != nil || left <= 0 || left > 30_000 {
		t.Errorf("its budgets are %s", asked.Budgets)
	}
	asked.Budgets = nil
	want := agenthttp.Request{
		RequestID: x.ID, TaskType: "COUNT", WorkflowID: "w", StageID: "s", Mode: "LIVE", RiskTier: "low", DomainID: "d", Inputs: agenthttp.Object(`{"text":"a b c"}`),
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
	if header.Get("Authorization") != "" || header.Get("Content-Type") != "application/json" || header.Get("Accept") != "application/json" || header.Get("Cookie") != "" {
		t.Errorf("header %v", header)
	}
	if string(budgetsOf(t.Context())) != "" {
		t.Error("a request without a deadline has a budget")
	}
	past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	defer cancel()
	if got := string(budgetsOf(past)); got != `{"timeout_ms":1}` {
		t.Errorf("the budget of a request whose time is over is %s", got)
	}
}

func TestProgressThatIsNone(t *testing.T) {
	half := 50.0
	for data, want := range map[string]string{
		`{"percent":50,"step":"half","message":"m"}`: "half m",
		`{"percent":50}`:             " ",
		`{"step":"a\u0007b"}`:        "a b ",
		`{"percent":"50"}`:           "",
		`{"step":7,"message":["m"]}`: "",
		`{}`:                         "",
		`[]`:                         "",
		`null`:                       "",
		`{`:                          "",
		`{"percent":-1e300,"step":"` + "s" + `"}`: "s ",
	} {
		p, told := new(execution).progressOf(agenthttp.Event{Type: agenthttp.Progress, Data: []byte(data)})
		if told != (want != "") || told && p.Step+" "+p.Message != want {
			t.Errorf("%s: %+v, %v", data, p, told)
		}
		if strings.Contains(data, ":50") && told && (p.Percent == nil || *p.Percent != half) {
			t.Errorf("%s: %+v", data, p)
		}
		if p.Percent != nil && (*p.Percent < 0 || *p.Percent > 100) {
			t.Errorf("%s: %v percent", data, *p.Percent)
		}
		if _, told := new(execution).progressOf(agenthttp.Event{Type: "state", Data: []byte(data)}); told {
			t.Errorf("an event of another type is progress: %s", data)
		}
	}
}

func TestWarningsArePassedOnUpToABound(t *testing.T) {
	b := newBench(t, "http://127.0.0.1:1", "")
	x := b.execution()
	x.passOn(append([]string{"a\x1b[2J\nb", strings.Repeat("x", 5000)}, make([]string, 30)...))
	w := x.Record.Warnings
	if len(w) != maxRemoteWarnings+1 || strings.ContainsAny(w[0], "\x1b\n") || len(w[1]) > maxRemoteWarning+50 || w[20] != "the agent has 12 more warnings" {
		t.Errorf("%d warnings: %.300q", len(w), w)
	}
}

func TestWhatIsNoAgentElsewhere(t *testing.T) {
	b := newBench(t, "http://127.0.0.1:1", "  auth: {secret: token}\n")
	if err := b.kind.Check(run.Request{Unit: b.unit}, run.Input{}); err != nil {
		t.Error(err)
	}
	if err := b.kind.Accept(t.Context(), b.unit); !fault.Is(err, fault.Forbidden) || fault.Public(err).Hint == "" {
		t.Errorf("an upload gets a secret: %v", err)
	}
	b.load("https://198.41.0.4", "")
	if err := b.kind.Accept(t.Context(), b.unit); err != nil {
		t.Error(err)
	}
	b.unit = &unit.Unit{Name: "words", Contract: b.unit.Contract}
	if got, _ := b.ends(); got.Outcome != api.SystemError || got.Failure.Category != api.CategoryPermanent || !strings.Contains(got.Failure.Message, "where it is") {
		t.Errorf("%+v %+v", got, got.Failure)
	}
}
