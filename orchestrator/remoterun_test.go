package orchestrator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

func TestAnAgentElsewhereIsAUnit(t *testing.T) {
	t.Parallel()
	w, agent := newFarFixture(t, "  mode: LIVE\n  risk_tier: low\n  domain_id: d\nlimits: {timeout: 20s}\n")
	w.noEngine()
	t.Run("its run goes through the states of all runs and needs no engine", func(t *testing.T) {
		record := w.await(w.ask("a b c"))
		if record.Outcome != api.Success || states(record) != "idle starting running completed cleanup idle" || string(record.Output) != `{"words":3}` || record.Kind != "remote" {
			t.Errorf("record %s", show(record))
		}
		keepsSchema(t, record)
		raw, _ := json.Marshal(record)
		for _, senseless := range []string{`"image"`, `"build_ms"`, `"create_ms"`, `"start_ms"`, `"usage"`} {
			if strings.Contains(string(raw), senseless) {
				t.Errorf("its record tells of %s: %s", senseless, raw)
			}
		}
	})
	t.Run("the agent is asked by the contract", func(t *testing.T) {
		asked := agent.requests()[0]
		var budgets struct {
			Timeout int64 `json:"timeout_ms"`
		}
		if err := json.Unmarshal(asked.Budgets, &budgets); err != nil || budgets.Timeout < 1000 || budgets.Timeout > 20_000 {
			t.Errorf("budgets %s: %v", asked.Budgets, err)
		}
		asked.Budgets = nil
		want := agenthttp.Request{
			RequestID: w.newest().ID, TaskType: "WORDS", Mode: "LIVE", RiskTier: "low", DomainID: "d", Inputs: agenthttp.Object(`{"text":"a b c"}`),
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("what breaks its contract doesn't reach the agent", func(t *testing.T) {
		before := len(agent.requests())
		_, _, err := w.service.Submit(trusted.Context(t), spool.Submission{Unit: "words", Input: json.RawMessage(`{"text":1}`)})
		if !fault.Is(err, fault.Input) || len(agent.requests()) != before {
			t.Errorf("%v, %d requests", err, len(agent.requests()))
		}
	})
	t.Run("a rerun asks again, as another run", func(t *testing.T) {
		first := w.newest()
		record, _, err := w.service.Rerun(trusted.Context(t), first.ID, "", api.Rerun{})
		if err != nil {
			t.Fatal(err)
		}
		record = w.await(record.ID)
		asked := agent.requests()
		if last := asked[len(asked)-1]; record.Outcome != api.Success || record.RerunOf != first.ID || last.RequestID != record.ID || string(last.Inputs) != `{"text":"a b c"}` {
			t.Errorf("%+v\n%s", last, show(record))
		}
	})
	t.Run("what a run is about goes before what the unit says, and no user is told", func(t *testing.T) {
		record, _, err := w.service.Submit(trusted.Context(t), spool.Submission{
			Unit: "words", Input: json.RawMessage(`{"text":"a b c"}`),
			Metadata: map[string]string{"mode": "DEMO", "risk_tier": "high", "workflow_id": "w", "stage_id": "s", "user_id": "ada"},
		})
		if err != nil {
			t.Fatal(err)
		}
		record = w.await(record.ID)
		asked := agent.requests()
		last := asked[len(asked)-1]
		last.Budgets = nil
		want := agenthttp.Request{
			RequestID: record.ID, TaskType: "WORDS", Mode: "DEMO", RiskTier: "high", DomainID: "d", WorkflowID: "w", StageID: "s",
			Inputs: agenthttp.Object(`{"text":"a b c"}`),
		}
		if diff := cmp.Diff(want, last); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the trace that the run belongs to goes on in the agent", func(t *testing.T) {
		const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
		record, _, err := w.service.Submit(trusted.Context(t), spool.Submission{
			Unit: "words", Input: json.RawMessage(`{"text":"a"}`), TraceParent: "00-" + trace + "-00f067aa0ba902b7-01",
		})
		if err != nil {
			t.Fatal(err)
		}
		w.await(record.ID)
		if got := agent.lastHeader().Get("Traceparent"); !strings.HasPrefix(got, "00-"+trace+"-") {
			t.Errorf("the agent was sent the trace context %q", got)
		}
		w.await(w.ask("a"))
		if got := agent.lastHeader().Get("Traceparent"); got != "" {
			t.Errorf("an agent was sent the trace context %q of a run without one", got)
		}
	})
	t.Run("it stands among the units, without an image", func(t *testing.T) {
		info, err := w.service.Units.Show(trusted.Context(t), "words")
		if err != nil || info.Kind != "remote" || info.Image != "" || info.Version == "" || !strings.Contains(string(info.OutputSchema), "words") {
			t.Errorf("%+v %v", info, err)
		}
	})
	t.Run("its connections are used again", func(t *testing.T) {
		// The client gives one up where its machine is too busy to tell in time that all was sent.
		if opened := int(agent.connections.Load()); opened > len(agent.requests())/2 {
			t.Errorf("%d connections for %d requests", opened, len(agent.requests()))
		}
	})
}

// newest returns the run that was accepted last.
func (w *fixture) newest() api.Record {
	w.t.Helper()
	page, err := w.service.Runs.List(trusted.Context(w.t), api.Filter{Limit: 1})
	if err != nil || len(page.Runs) != 1 {
		w.t.Fatal(page, err)
	}
	return w.await(page.Runs[0].ID)
}

func TestAnAgentElsewhereIsCalledByACapsule(t *testing.T) {
	t.Parallel()
	w, agent := newFarFixture(t, "")
	record := w.await(w.submitScript(script{Mark: "a", Calls: []script{{Target: "words"}}}))
	calls := record.Calls
	if record.Outcome != api.Success || len(calls) != 1 || calls[0].Unit != "words" || calls[0].Outcome != api.Success {
		t.Fatal(show(record))
	}
	if asked := agent.requests(); len(asked) != 1 || asked[0].RequestID != calls[0].ID {
		t.Errorf("asked %+v", asked)
	}
	if answer := w.answers["a"][0]; !strings.Contains(answer, `"words":3`) {
		t.Errorf("the caller got %s", answer)
	}
}

func TestWhatAnAgentElsewhereTellsIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	w, agent := newFarFixture(t, "  stream: true\n")
	progressed := func(id string) (all []api.ProgressEvent) {
		for event, err := range w.service.Feed.Events(trusted.Context(t), id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if event.Type == api.EventProgress {
				var p api.ProgressEvent
				_ = json.Unmarshal(event.Data, &p)
				all = append(all, p)
			}
		}
		return all
	}
	t.Run("progress", func(t *testing.T) {
		agent.answers(streams(`{"percent":50,"step":"half\u001b[2J","message":"m"}`, `{"percent":1e9,"step":["x"],"message":"`+long+`"}`, `{"state":"x"}`, `[1]`, `"x"`, `{"percent":"50"}`))
		id := w.ask("")
		if record := w.await(id); record.Outcome != api.Success {
			t.Fatal(show(record))
		}
		half := 50.0
		want := []api.ProgressEvent{{Percent: &half, Step: "half [2J", Message: "m"}, {Message: long[:1021] + "…"}}
		if diff := cmp.Diff(want, progressed(id)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a flood of progress", func(t *testing.T) {
		flood := make([]string, 500)
		for i := range flood {
			flood[i] = fmt.Sprintf(`{"percent":%d}`, i%100)
		}
		agent.answers(streams(flood...))
		began := time.Now()
		id := w.ask("")
		w.await(id)
		most := 10 * (2 + int(time.Since(began).Seconds()))
		if n := len(progressed(id)); n == 0 || n > most {
			t.Errorf("%d events of progress, want no more than %d", n, most)
		}
	})
	t.Run("warnings", func(t *testing.T) {
		warnings := `"w\u001b[2J","` + long + `"` + strings.Repeat(`,"more"`, 30)
		answer := `{"request_id":"$ID","task_type":"$TASK","status":"ok","outputs":{"words":3},"warnings":[` + warnings + `]}`
		agent.answers(func(w http.ResponseWriter, asked agenthttp.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			says(http.StatusOK, "event: final\ndata: "+answer+"\n\n")(noHeader{w}, asked)
		})
		record := w.await(w.ask(""))
		got := record.Warnings
		if record.Outcome != api.Success || len(got) != 21 || got[0] != "the agent: w [2J" || len(got[1]) > 1100 || got[20] != "the agent has 12 more warnings" {
			t.Errorf("%d warnings: %s", len(got), show(record))
		}
	})
}

// noHeader keeps the header that was set before.
type noHeader struct{ http.ResponseWriter }

func (noHeader) Header() http.Header { return http.Header{} }

func TestAttemptsAtAnAgentElsewhereAreTheRuns(t *testing.T) {
	t.Parallel()
	w, agent := newFarFixture(t, "retries: 2\n")
	failing := func(times int) func(http.ResponseWriter, agenthttp.Request) {
		return func(w http.ResponseWriter, asked agenthttp.Request) {
			if times--; times >= 0 {
				says(http.StatusServiceUnavailable, "")(w, asked)
				return
			}
			wordStats(w, asked)
		}
	}
	agent.answers(failing(2))
	record := w.await(w.ask("a"))
	if record.Outcome != api.Success || record.Retries != 2 || states(record) != "idle starting running failed starting running failed starting running completed cleanup idle" {
		t.Errorf("record %s", show(record))
	}
	for _, asked := range agent.requests() {
		if asked.RequestID != record.ID {
			t.Errorf("an attempt has the request_id %s", asked.RequestID)
		}
	}
	agent.answers(failing(100))
	before := len(agent.requests())
	record = w.await(w.ask("a"))
	if n := len(agent.requests()) - before; record.Error == nil || record.Error.Kind != "remote_busy" || n != 3 {
		t.Errorf("%d requests, record %s", n, show(record))
	}
}

func TestACallElsewhereIsBrokenOff(t *testing.T) {
	t.Parallel()
	t.Run("at its time limit", func(t *testing.T) {
		w, agent := newFarFixture(t, "limits: {timeout: 100ms}\n")
		agent.answers(hangs)
		within(t, func() bool { // on a busy machine it may be over before the agent is asked
			record := w.await(w.ask("a"))
			if record.Outcome != api.TimedOut || record.State != api.Timeout || !strings.Contains(record.Error.Message, "100ms") {
				t.Errorf("record %s", show(record))
			}
			return len(agent.requests()) > 0
		}, func() string { return "it wasn't asked" })
		agent.sawItBreak(t)
	})
	t.Run("in the middle of a stream, when it is cancelled", func(t *testing.T) {
		w, agent := newFarFixture(t, "  stream: true\n")
		agent.answers(func(w http.ResponseWriter, asked agenthttp.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: started\ndata: {\"request_id\":%q}\n\n", asked.RequestID)
			_ = http.NewResponseController(w).Flush()
			hangs(w, asked)
		})
		id := w.ask("a")
		within(t, func() bool { return len(agent.requests()) == 1 }, func() string { return "it wasn't asked" })
		if _, err := w.service.Cancel(trusted.Context(t), id, "because"); err != nil {
			t.Fatal(err)
		}
		if record := w.await(id); record.Outcome != api.WasCancelled || !strings.Contains(record.Error.Message, "because") {
			t.Errorf("record %s", show(record))
		}
		agent.sawItBreak(t)
	})
	t.Run("with its caller", func(t *testing.T) {
		w, agent := newFarFixture(t, "")
		agent.answers(hangs)
		id := w.submitScript(script{Mark: "a", Calls: []script{{Target: "words"}}})
		within(t, func() bool { return len(agent.requests()) == 1 }, func() string { return "it wasn't asked" })
		if _, err := w.service.Cancel(trusted.Context(t), id, ""); err != nil {
			t.Fatal(err)
		}
		if record := w.await(id); record.Outcome != api.WasCancelled {
			t.Errorf("record %s", show(record))
		}
		agent.sawItBreak(t)
	})
}

// sawItBreak waits until the agent knows that a client of its has gone.
func (a *farAgent) sawItBreak(t *testing.T) {
	t.Helper()
	within(t, func() bool { return a.broken.Load() > 0 }, func() string { return "the agent wasn't told" })
}
