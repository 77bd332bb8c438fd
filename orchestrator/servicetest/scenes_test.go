package servicetest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/units"
)

// scenes are by the names of their goldens.
var scenes = map[string]func(t testing.TB) *scene{
	"capsule":  capsuleScene,
	"flow":     flowScene,
	"agent":    agentScene,
	"session":  sessionScene,
	"living":   livingScene,
	"au":       auScene,
	"model":    modelScene,
	"push":     pushScene,
	"remote":   remoteScene,
	"schedule": scheduleScene,
	"pool":     poolScene,
}

const teller = `{
  "input": {"type": "object", "properties": {"doc": {"type": "string", "format": "file_path"}, "n": {"type": "integer"}}},
  "output": {"type": "object", "properties": {"file": {"type": "string", "format": "file_path"}, "answer": {"type": "string"}}}
}`

// capsuleScene has a run that everything is said of, tells everything, calls another run, and waits
// for the answer of a person.
func capsuleScene(testing.TB) *scene {
	const (
		progress = `{"percent": 50, "step": "half", "message": "so far"}`
		artifact = `{"id": "a", "name": "report", "text": "once"}`
		call     = `{"target": "worker", "args": {"mark": "called", "until": "gate"}}`
	)
	s, runs := &scene{}, make(chan struct{})
	tell := func(ctx context.Context, box servicetest.Sandbox) int {
		_, _ = fmt.Fprintln(box.Stdout, "begun")
		if !s.found.Load() {
			select { // else it may tell something before it is stored that it runs
			case <-runs:
			case <-ctx.Done():
			}
			box.Ask(ctx, "POST", "/progress", "", []byte(progress))
			box.Ask(ctx, "POST", "/artifact", "part-1", []byte(artifact))
		}
		box.Ask(ctx, "POST", "/handoff?wait=false", "call", []byte(call))
		answer := box.Ask(ctx, "POST", "/ask", "why", []byte(`{"text": "Why?", "options": ["so", "not so"]}`))
		called := box.Ask(ctx, "POST", "/handoff", "call", []byte(call))
		if ctx.Err() != nil {
			return 137
		}
		_, _ = fmt.Fprintln(box.Stdout, "over")
		status, _, _ := strings.Cut(called, " ")
		_ = os.WriteFile(filepath.Join(box.Path("/io/output"), "out.txt"), []byte(status), 0o600)
		box.Output(map[string]string{"file": "out.txt", "answer": answer})
		return 0
	}
	s.options = []servicetest.Option{
		servicetest.Capsule("teller", "description: It tells.\nlimits: {timeout: 2h}\n", teller, tell),
		servicetest.Tools("teller", "- {name: work, capsule: worker}\n"),
		servicetest.Set(func(s *servicetest.Settings) {
			s.Units["teller"] = units.Settings{Concurrency: 3}
		}),
	}
	s.begin = func(h *servicetest.Harness) {
		files := spoolOf(h, "doc", "in.txt", "content")
		ctx := access.WithGrant(context.Background(), access.Grant{Name: "ci", Scopes: []access.Scope{access.Read, access.Run}})
		record, _, err := h.Service.Submit(ctx, spool.Submission{
			Unit: "teller", Input: []byte(`{"n": 7}`), Files: files, Timeout: time.Hour, Within: 50 * time.Minute, // none ends before the last moment was gone on from
			Metadata: map[string]string{"user_id": "ada"}, Context: "thread", Key: "key",
			Message:     &api.MessageEvent{ID: "m", Role: api.RoleUser, Parts: []api.Part{{Text: "go"}}},
			TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		})
		if err != nil {
			h.Fatal(err)
		}
		h.Until(record.ID, func(r api.Record) bool { return r.State == api.Running })
		close(runs)
		logged(h, record.ID)
		asked(h, record.ID)
		h.Within("the call runs", func() bool { return h.Starts("called") == 1 })
	}
	s.goOn = func(h *servicetest.Harness) {
		answer(h, "so")
		h.OpenGate("gate")
	}
	return s
}

func spoolOf(h *servicetest.Harness, field, name, content string) *spool.Spool {
	h.Helper()
	files, err := h.Service.NewSpool()
	if err == nil {
		err = files.Add(field, name, strings.NewReader(content), 1<<20)
	}
	if err != nil {
		h.Fatal(err)
	}
	return files
}

// asked returns when a run has a question.
func asked(h *servicetest.Harness, id string) {
	h.Helper()
	h.Until(id, func(r api.Record) bool { return r.Question != nil })
}

// logged returns when a line of a run's log was kept.
func logged(h *servicetest.Harness, id string) {
	h.Helper()
	h.Within("a line", func() (is bool) {
		for _, err := range h.Service.Feed.Log(access.WithServer(context.Background()), id, api.LogFilter{}) {
			return err == nil
		}
		return false
	})
}

// answer answers the one question that is open.
func answer(h *servicetest.Harness, action string) {
	h.Helper()
	var open api.QuestionPage
	h.Within("a question", func() (is bool) {
		var err error
		if open, err = h.Service.Questions.List(access.WithServer(context.Background()), questions.Filter{}); err != nil {
			h.Fatal(err)
		}
		return len(open.Questions) == 1
	})
	if err := h.Service.Questions.Answer(access.WithServer(context.Background()), open.Questions[0].ID, api.Answer{Action: action, By: "ada"}); err != nil {
		h.Fatal(err)
	}
}

// flowScene has a flow with a step that is done and one that calls, and a flow that asks.
func flowScene(testing.TB) *scene {
	s := &scene{}
	s.options = []servicetest.Option{
		servicetest.Flow("calls", "description: It flows.\n", `
start: first
nodes:
  first:
    run: worker
    with: {mark: one, file: a.txt}
    set: {a: "${{ out.mark }}", file: "${{ out.file }}"}
    next: second
  second: {run: worker, with: {mark: two, until: gate}, next: last}
  last: {run: worker, with: {mark: last, file: b.txt, doc: "${{ state.file }}"}, action: done}
output: {all: "${{ state.a }}"}
`),
		servicetest.Flow("asks", "", `
start: fails
nodes:
  fails:
    run: worker
    with: {exit: 3}
    retry: {tries: 2, wait: 1ms}
    fallback: {mark: none}
    set: {a: "${{ out.mark }}"}
    next: sure
  sure:
    ask: "Sure of ${{ state.a }}?"
    form: {type: object}
    show: {a: "${{ state.a }}"}
    answers: [approve, reject]
    next: each
  each:
    map: [1, 2]
    parallel: 1
    run: worker
    with: {mark: "${{ string(item) }}"}
    collect: "${{ out.mark }}"
    set: {all: "${{ out }}"}
output: {all: "${{ state.all }}"}
`),
	}
	s.begin = func(h *servicetest.Harness) {
		h.Submit("calls", map[string]any{})
		h.Within("the call runs", func() bool { return h.Starts("two") == 1 })
		asked(h, h.Submit("asks", map[string]any{}))
	}
	s.goOn = func(h *servicetest.Harness) {
		answer(h, "approve")
		over(h, "asks")
		h.OpenGate("gate")
	}
	return s
}

// over returns when the one run of a unit is over.
func over(h *servicetest.Harness, unit string) {
	h.Helper()
	page, err := h.Service.Runs.List(access.WithServer(context.Background()), api.Filter{Unit: unit})
	if err != nil || len(page.Runs) != 1 {
		h.Fatal(len(page.Runs), err)
	}
	h.Await(page.Runs[0].ID)
}
