package orchestrator

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// What an agent elsewhere was asked by a server that then ended, nobody can take over: it is
// a failed attempt.
func TestServiceRecoversRunsOfAgentsElsewhere(t *testing.T) {
	t.Parallel()
	begun := func(t *testing.T, w *fixture, agent *farAgent) string {
		t.Helper()
		agent.answers(hangs)
		id := w.ask("a")
		within(t, func() bool { return len(agent.requests()) == 1 }, func() string { return "it wasn't asked" })
		return id
	}
	t.Run("one with retries left is made again, with the same request_id", func(t *testing.T) {
		w, agent := newFarFixture(t, "retries: 1\n")
		w.noEngine()
		id := begun(t, w, agent)
		w.stop()
		agent.answers(wordStats)
		w.start()
		record := w.await(id)
		if record.Outcome != api.Success || record.Retries != 1 || record.Attempts[0].Error.Category != api.CategoryTransient ||
			!strings.Contains(record.Attempts[0].Error.Message, "the server ended") {
			t.Errorf("record %s", show(record))
		}
		if asked := agent.requests(); len(asked) != 2 || asked[0].RequestID != id || asked[1].RequestID != id {
			t.Errorf("asked %+v", asked)
		}
		keepsSchema(t, record)
	})
	t.Run("one without retries has failed", func(t *testing.T) {
		w, agent := newFarFixture(t, "retries: 0\n")
		w.noEngine()
		id := begun(t, w, agent)
		w.stop()
		w.start()
		record := w.await(id)
		if record.Outcome != api.SystemError || record.Error.Category != api.CategoryTransient || len(agent.requests()) != 1 {
			t.Errorf("record %s", show(record))
		}
	})
	t.Run("one that was only starting had asked nothing", func(t *testing.T) {
		w, agent := newFarFixture(t, "retries: 0\n", func(o *settings) { o.Concurrency = 1 })
		w.noEngine()
		first := begun(t, w, agent)
		second := w.ask("b")
		w.stop()
		w.rewind(second, api.Starting)
		agent.answers(wordStats)
		w.start()
		if record := w.await(second); record.Outcome != api.Success || record.Retries != 0 {
			t.Errorf("record %s", show(record))
		}
		w.await(first)
	})
	t.Run("a request to cancel is kept", func(t *testing.T) {
		w, agent := newFarFixture(t, "retries: 0\n")
		id := begun(t, w, agent)
		w.stop()
		w.dieCancelling(id)
		w.start()
		if record := w.await(id); record.Outcome != api.WasCancelled || !strings.Contains(record.Error.Message, "because") {
			t.Errorf("record %s", show(record))
		}
	})
	t.Run("one that had ended is only cleaned up", func(t *testing.T) {
		w, _ := newFarFixture(t, "")
		w.noEngine()
		id := w.ask("a")
		w.until(id, func(r api.Record) bool { return r.Outcome != "" })
		w.await(id)
		w.stop()
		w.rewind(id, api.Completed)
		w.start()
		if record := w.await(id); record.Outcome != api.Success {
			t.Errorf("record %s", show(record))
		}
	})
}

// rewind lets a run that is stored stand in an earlier state, as a process leaves it that
// dies there.
func (w *fixture) rewind(id string, state api.State) {
	w.t.Helper()
	s, err := w.opts.service(w.engine)
	if err != nil {
		w.t.Fatal(err)
	}
	row, err := s.store.Runs.Get(trusted.Context(w.t), id)
	if err != nil {
		w.t.Fatal(err)
	}
	record, err := records.Decode(row)
	if err != nil {
		w.t.Fatal(err)
	}
	j := s.lead(trusted.Context(w.t), &run.Run{ID: id, Record: record}, nil, nil)
	if state == api.Completed { // all that came after it is undone
		j.Record.Transitions = j.Record.Transitions[:len(j.Record.Transitions)-2]
	}
	j.Record.State = state
	stale, err := j.row()
	if err != nil {
		w.t.Fatal(err)
	}
	stale.Private, stale.Finished = row.Private, false
	if err := s.store.Runs.Save(trusted.Context(w.t), stale); err != nil {
		w.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func TestAnAgentElsewhereServesRunsThatLiveWithTheirCaller(t *testing.T) {
	t.Parallel()
	agent := newFarAgent(t, (*httptest.Server).Start)
	dir, data := filepath.Join(t.TempDir(), "words"), t.TempDir()
	writeWords(t, dir, agent.URL, "")
	c, err := capsule.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	engine := enginetest.NewFake(nil)
	o := newLocal(t, container.New(engine, container.Options{}), Options{Home: data})
	input, err := contract.NewPayload(map[string]any{"text": "a"})
	if err != nil {
		t.Fatal(err)
	}
	ended, err := o.Run(trusted.Context(t), Request{Request: run.Request{Unit: unit.Of(c), Input: input}})
	record := ended.Record
	if err != nil || record.Outcome != api.Success || string(record.Output) != `{"words":3}` {
		t.Errorf("%v %s", err, show(record))
	}
	keepsSchema(t, record)
	dead, err := o.data.make("0198c0de-dead") // what a process leaves that is killed meanwhile
	if err == nil {
		err = os.MkdirAll(filepath.Join(dead.path, "runs", "0198c0de-run", "input"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.release(); err != nil {
		t.Fatal(err)
	}
	if swept, err := o.Sweep(trusted.Context(t)); err != nil || len(swept) != 1 {
		t.Errorf("swept %v: %v", swept, err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if asked := engine.Calls(); len(asked) > 0 {
		t.Errorf("the engine was asked for %v", asked)
	}
	if left, _ := filepath.Glob(filepath.Join(data, "runs", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
