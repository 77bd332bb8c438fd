package orchestrator

import (
	"context"
	"fmt"
	goruntime "runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

const askingGraph = `
nodes:
  a:
    ask: Publish ${{ input.n }}?
    show: {n: "${{ input.n }}"}
    form: {type: object, properties: {why: {type: string}}, required: [why]}
    timeout: 50s
    next: {approve: b, reject: end, timeout: late}
  b: {set: {why: "${{ state.why ?? \"\" }}"}}
  late: {set: {late: true}}
output: {late: "${{ state.late ?? false }}"}
`

// asked returns the one open question.
func (w *fixture) asked() api.Question {
	w.t.Helper()
	var page api.QuestionPage
	within(w.t, func() bool {
		var err error
		if page, err = w.service.Questions.List(trusted.Context(w.t), questions.Filter{}); err != nil {
			w.t.Fatal(err)
		}
		return len(page.Questions) == 1
	}, func() string { return fmt.Sprint(page) })
	return page.Questions[0]
}

func TestAFlowAsksPeople(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, askingGraph)
	id := w.submitTo("f", chainInput{N: 5})
	q := w.asked()
	if q.Run != id || q.Unit != "f" || q.Address != "a" || q.Text != "Publish 5?" || string(q.Show) != `{"n":5}` || !slices.Equal(q.Answers, []string{"approve", "reject"}) || q.Until == nil {
		t.Errorf("%+v", q)
	}
	w.stop()
	w.start()
	if again := w.asked(); again.ID != q.ID || !again.Until.Equal(*q.Until) {
		t.Errorf("%+v, first %+v", again, q)
	}
	for _, wrong := range []api.Answer{{Action: "maybe"}, {Action: "approve"}, {Action: "approve", Form: encoded(map[string]any{"why": 1})}} {
		if err := w.service.Questions.Answer(trusted.Context(t), q.ID, wrong); !fault.Is(err, fault.Input) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	yes := api.Answer{Action: "approve", Form: encoded(map[string]any{"why": "so"}), By: "ada"}
	for range 2 {
		if err := w.service.Questions.Answer(trusted.Context(t), q.ID, yes); err != nil {
			t.Error(err)
		}
	}
	if err := w.service.Questions.Answer(trusted.Context(t), q.ID, api.Answer{Action: "reject", Form: yes.Form}); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v", err)
	}
	record := w.await(id)
	if record.Outcome != api.Success || string(record.Output) != `{"late":false}` {
		t.Errorf("record %s", show(record))
	}
	if err := w.service.Questions.Answer(trusted.Context(t), "nobody", yes); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v", err)
	}
}

func TestAnAnswerBetweenTwoProcessesCounts(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, askingGraph)
	id := w.submitTo("f", chainInput{})
	q := w.asked()
	w.stop()
	s, err := w.opts.service(w.engine) // it isn't started: nothing goes on
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte(`{"action":"reject","form":{"why":"x"}}`)
	if err := s.store.Questions.Answer(trusted.Context(t), store.Key{}, q.ID, raw, "", q.AskedAt); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.start()
	if record := w.await(id); record.Outcome != api.Success {
		t.Errorf("record %s", show(record))
	}
}

func TestAQuestionEndsWithItsRun(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, askingGraph)
	id := w.submitTo("f", chainInput{})
	q := w.asked()
	if _, err := w.service.Cancel(trusted.Context(t), id, ""); err != nil {
		t.Fatal(err)
	}
	if record := w.await(id); record.Outcome != api.WasCancelled {
		t.Errorf("record %s", show(record))
	}
	err := w.service.Questions.Answer(trusted.Context(t), q.ID, api.Answer{Action: "approve", Form: encoded(map[string]any{"why": "so"})})
	if page, _ := w.service.Questions.List(trusted.Context(t), questions.Filter{}); !fault.Is(err, fault.Conflict) || len(page.Questions) > 0 {
		t.Errorf("%v, open: %v", err, page.Questions)
	}
}

// told lists the events of some types of a run that is over, each in its short form.
func (w *fixture) told(id string, short func(data api.EventData) string) (all []string) {
	w.t.Helper()
	for _, event := range w.events(id, 0) {
		data, err := event.Decode()
		if err != nil {
			w.t.Fatal(err)
		}
		if text := short(data); text != "" {
			all = append(all, text)
		}
	}
	return all
}

func (w *fixture) answer(question, action string) {
	w.t.Helper()
	if err := w.service.Questions.Answer(trusted.Context(w.t), question, api.Answer{Action: action}); err != nil {
		w.t.Fatal(err)
	}
}

// TestAFlowGoesOnWithEachAnswer asks three times over, and holds that what came before an answer
// is done and told of once.
func TestAFlowGoesOnWithEachAnswer(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, `
start: work
nodes:
  work: {run: worker, with: {mark: "${{ 'w' + string(visits.work) }}"}, set: {n: "${{ (state.n ?? 0) + 1 }}"}, next: more}
  more: {ask: "More than ${{ state.n }}?", next: {approve: work, reject: end}}
output: {n: "${{ state.n }}"}
`)
	id := w.submitTo("f", chainInput{})
	for n := 1; n <= 3; n++ {
		q := w.asked()
		if want := fmt.Sprintf("More than %d?", n); q.Text != want {
			t.Fatalf("it asks %q, want %q", q.Text, want)
		}
		w.answer(q.ID, map[bool]string{true: "approve", false: "reject"}[n < 3])
	}
	if record := w.await(id); record.Outcome != api.Success || string(record.Output) != `{"n":3}` || states(record) != "idle starting running completed cleanup idle" {
		t.Fatalf("record %s", show(record))
	}
	for n := 1; n <= 3; n++ {
		if starts := w.starts(fmt.Sprint("w", n)); starts != 1 {
			t.Errorf("w%d was started %d times", n, starts)
		}
	}
	nodes := w.told(id, func(data api.EventData) string {
		if node, ok := data.(api.NodeEvent); ok {
			return node.Address + " " + string(node.State)
		}
		return ""
	})
	want := []string{"work done", "more open", "more done", "work#2 done", "more#2 open", "more#2 done", "work#3 done", "more#3 open", "more#3 done"}
	if diff := cmp.Diff(want, nodes); diff != "" {
		t.Error(diff)
	}
}

func TestWhoAwaitsHearsOfEachQuestionAndOfTheEnd(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, `
start: a
nodes:
  a: {ask: "First?", next: b}
  b: {ask: "Second?"}
`)
	id := w.submitTo("f", chainInput{})
	for _, want := range []string{"First?", "Second?"} {
		record, err := w.service.Runs.AwaitAsked(trusted.Context(t), id)
		if err != nil || record.Question == nil {
			t.Fatalf("%v, record %s", err, show(record))
		}
		if q, err := w.service.Questions.Get(trusted.Context(t), record.Question.ID); err != nil || q.Text != want {
			t.Fatalf("it asks %q, %v, want %q", q.Text, err, want)
		}
		w.answer(record.Question.ID, "approve")
	}
	if record, err := w.service.Runs.AwaitAsked(trusted.Context(t), id); err != nil || record.Outcome != api.Success {
		t.Errorf("%v, record %s", err, show(record))
	}
}

// TestAQuestionThatNobodyAnswers holds for a question beside which nothing goes on, and for others.
func TestAQuestionThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	const ask = `{ask: "Well?", timeout: 300ms, next: {timeout: late, approve: end, reject: end}}`
	const late = `late: {set: {late: true}}`
	for name, graph := range map[string]string{
		"in the flow":     `{start: a, nodes: {a: ` + ask + `, ` + late + `}, output: {late: "${{ state.late ?? false }}"}}`,
		"in a sub-flow":   `{nodes: {s: {scope: shared, flow: {start: a, nodes: {a: ` + ask + `, ` + late + `}}}}, output: {late: "${{ state.late ?? false }}"}}`,
		"around which":    `{start: s, nodes: {s: {timeout: 300ms, flow: {nodes: {a: {ask: "Well?"}}}, next: {timeout: late, approve: end, reject: end}}, ` + late + `}, output: {late: "${{ state.late ?? false }}"}}`,
		"beside another":  `{start: b, nodes: {b: {branches: {x: {ask: "Well?", timeout: 300ms, fallback: true}, y: {wait: 1ms}}, set: {late: "${{ out.x }}"}}}, output: {late: "${{ state.late ?? false }}"}}`,
		"of which many":   `{nodes: {m: {map: "${{ [1, 2] }}", flow: {start: a, nodes: {a: ` + ask + `, ` + late + `}}, collect: "${{ out.late }}", set: {late: "${{ out[1] }}"}}}, output: {late: "${{ state.late ?? false }}"}}`,
		"that has waited": `{start: w, nodes: {w: {wait: 10ms, next: a}, a: ` + ask + `, ` + late + `}, output: {late: "${{ state.late ?? false }}"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for limit := 300 * time.Millisecond; ; limit *= 10 {
				w := newFlowFixture(t, strings.ReplaceAll(graph, "300ms", limit.String()))
				id := w.submitTo("f", chainInput{})
				if record := w.await(id); record.Outcome != api.Success || string(record.Output) != `{"late":true}` {
					t.Fatalf("record %s", show(record))
				}
				questions := w.told(id, func(data api.EventData) string {
					if q, ok := data.(api.QuestionEvent); ok {
						return string(q.State)
					}
					return ""
				})
				if len(questions) == 0 && limit < 30*time.Second { // a busy machine may take longer to ask
					continue
				}
				slices.Sort(questions)
				if questions = slices.Compact(questions); !slices.Equal(questions, []string{"closed", "open"}) {
					t.Errorf("questions were %q", questions)
				}
				return
			}
		})
	}
}

func TestTheTimeOfAFlowEndsItsQuestion(t *testing.T) {
	t.Parallel()
	for limit := 500 * time.Millisecond; ; limit *= 10 {
		w := newFixture(t, func(s *settings) {
			flowOf(t, s, "f", fmt.Sprintf("limits: {timeout: %v}\n", limit), anyContract, `{nodes: {a: {ask: "Well?"}}}`)
		})
		id := w.submitTo("f", chainInput{})
		record := w.await(id)
		if record.Outcome != api.TimedOut || !strings.Contains(record.Error.Message, limit.String()) {
			t.Fatalf("record %s", show(record))
		}
		asked := w.told(id, func(data api.EventData) string {
			if q, ok := data.(api.QuestionEvent); ok && q.State == api.QuestionOpen {
				return q.ID
			}
			return ""
		})
		if len(asked) == 0 && limit < 30*time.Second { // a busy machine may take longer to ask
			continue
		}
		if len(asked) != 1 {
			t.Fatalf("it asked %q", asked)
		}
		if row, err := w.service.store.Questions.Get(trusted.Context(t), asked[0]); err != nil || row.ClosedAt.IsZero() {
			t.Errorf("%+v, %v", row, err)
		}
		return
	}
}

func TestWhatIsBesideAQuestionGoesOn(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, `{nodes: {b: {branches: {x: {ask: "Well?"}, y: {run: worker, with: {mark: y, until: g}}}}}}`)
	id := w.submitTo("f", chainInput{})
	q := w.asked()
	within(t, func() bool { return w.starts("y") == 1 }, func() string { return fmt.Sprint(w.steps(id)) })
	w.open("g")
	within(t, func() bool { return slices.Contains(w.steps(id), "b/y~1 done") }, func() string { return fmt.Sprint(w.steps(id)) })
	if again := w.asked(); again.ID != q.ID {
		t.Errorf("%+v, first %+v", again, q)
	}
	w.answer(q.ID, "approve")
	if record := w.await(id); record.Outcome != api.Success || w.starts("y") != 1 {
		t.Errorf("%d starts, record %s", w.starts("y"), show(record))
	}
}

func TestAShutdownDoesNotWaitForPeople(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, `{nodes: {a: {ask: "Well?"}}}`)
	id := w.submitTo("f", chainInput{})
	q := w.asked()
	patient, cancel := context.WithTimeout(trusted.Context(t), testkit.Patience)
	defer cancel()
	w.service.Shutdown(patient, false)
	if patient.Err() != nil {
		t.Error("it waited")
	}
	w.stop()
	w.start()
	if again := w.asked(); again.ID != q.ID {
		t.Errorf("%+v, first %+v", again, q)
	}
	w.answer(q.ID, "approve")
	if record := w.await(id); record.Outcome != api.Success {
		t.Errorf("record %s", show(record))
	}
}

// TestAFlowThatWaitsForAPersonKeepsItsLane holds that its unit's concurrency is taken, and that
// it holds no slot.
func TestAFlowThatWaitsForAPersonKeepsItsLane(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(s *settings) {
		s.Concurrency = 1
		flowOf(t, s, "f", "concurrency: 1\n", anyContract, `{nodes: {a: {ask: "Well?"}}}`)
	})
	first, second := w.submitTo("f", chainInput{}), w.submitTo("f", chainInput{})
	q := w.asked()
	if q.Run != first {
		t.Fatalf("the question is of %s", q.Run)
	}
	if record := w.await(w.submit(orders{Mark: "beside"})); record.Outcome != api.Success {
		t.Errorf("record %s", show(record))
	}
	if record, err := w.service.Runs.Get(trusted.Context(t), second); err != nil || record.State != api.Idle {
		t.Errorf("record %s, %v", show(record), err)
	}
	for _, id := range []string{first, second} {
		w.until(id, running)
		w.answer(w.asked().ID, "approve")
		if record := w.await(id); record.Outcome != api.Success {
			t.Errorf("record %s", show(record))
		}
	}
}

// TestAnOpenQuestionTakesLittleMemory holds that a flow that waits for a person keeps no deep
// stack, and nothing of its walk.
func TestAnOpenQuestionTakesLittleMemory(t *testing.T) {
	// Not parallel: it measures the memory of the process.
	const first, more, most = 20, 100, 16 << 10 // bytes
	w := newFixture(t, func(s *settings) {
		// Its time must not be over before all questions are open.
		flowOf(t, s, "f", "limits: {timeout: 1h}\n", anyContract, `{nodes: {a: {ask: "Go on?"}}}`)
	})
	taken := func() int64 {
		goruntime.GC()
		of := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/scan/stack:bytes"}}
		metrics.Read(of) // not what the stacks have reserved, which lie as they fall
		return int64(of[0].Value.Uint64() + of[1].Value.Uint64())
	}
	open := func() []api.Question {
		page, err := w.service.Questions.List(trusted.Context(t), questions.Filter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return page.Questions
	}
	var ids []string
	ask := func(n int) {
		for range n {
			ids = append(ids, w.submitTo("f", chainInput{}))
		}
		testkit.Eventually(t, "all questions are open", func() bool { return len(open()) == len(ids) })
	}
	ask(first) // with what all questions share: the flow, statements, a page of the history
	var before, each int64
	testkit.Eventually(t, "nothing more is let go", func() bool {
		was := before
		before = taken()
		return was > 0 && before >= was
	})
	ask(more)
	within(t, func() bool {
		each = (taken() - before) / more
		return each <= most
	}, func() string { return fmt.Sprintf("each takes %d bytes", each) })
	t.Logf("each takes %d bytes", each)
	for _, q := range open() {
		w.answer(q.ID, "approve")
	}
	for _, id := range ids {
		if record := w.await(id); record.Outcome != api.Success {
			t.Errorf("record %s", show(record))
		}
	}
}

func TestWhoAnsweredStandsBesideWhoTheySayTheyAre(t *testing.T) {
	t.Parallel()
	w := newFlowFixture(t, askingGraph)
	id := w.submitTo("f", chainInput{N: 5})
	q := w.asked()
	mallory := holding(t, "mallory", access.Read, access.Run)
	if err := w.service.Questions.Answer(mallory, q.ID, api.Answer{Action: "approve", Form: encoded(map[string]any{"why": "so"}), By: "the boss", Note: "fine"}); err != nil {
		t.Fatal(err)
	}
	w.await(id)
	page, err := w.service.Questions.List(trusted.Context(t), questions.Filter{Run: id, All: true})
	if err != nil || len(page.Questions) != 1 || page.Questions[0].Answered == nil {
		t.Fatalf("%+v, %v", page, err)
	}
	if a := page.Questions[0].Answered; a.By != "the boss" || a.Token != "mallory" || a.Note != "fine" || a.Action != "approve" || string(a.Form) != `{"why":"so"}` || a.At.IsZero() {
		t.Errorf("%+v", a)
	}
	var told []api.QuestionEvent
	for _, event := range w.events(id, 0) {
		if data, err := event.Decode(); err == nil {
			if question, ok := data.(api.QuestionEvent); ok {
				told = append(told, question)
			}
		}
	}
	if len(told) != 2 || told[1].Token != "mallory" || told[1].Action != "approve" {
		t.Errorf("the events tell %+v", told)
	}
	if _, err := w.service.Questions.List(trusted.Context(t), questions.Filter{All: true}); !fault.Is(err, fault.Input) {
		t.Errorf("all questions of all runs: %v", err)
	}
}
