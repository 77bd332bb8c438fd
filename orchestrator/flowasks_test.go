package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	goruntime "runtime"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

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
	if err := w.service.Answer(w.t.Context(), question, api.Answer{Action: action}); err != nil {
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
		record, err := w.service.AwaitAsked(t.Context(), id)
		if err != nil || record.Question == nil {
			t.Fatalf("%v, record %s", err, show(record))
		}
		if q, err := w.service.Question(t.Context(), record.Question.ID); err != nil || q.Text != want {
			t.Fatalf("it asks %q, %v, want %q", q.Text, err, want)
		}
		w.answer(record.Question.ID, "approve")
	}
	if record, err := w.service.AwaitAsked(t.Context(), id); err != nil || record.Outcome != api.Success {
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
		if row, err := w.service.store.Question(t.Context(), asked[0]); err != nil || row.ClosedAt.IsZero() {
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
	patient, cancel := context.WithTimeout(t.Context(), testkit.Patience)
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
	if record, err := w.service.Get(t.Context(), second); err != nil || record.State != api.Idle {
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
	const questions, most = 200, 20 << 10 // bytes; 34 KiB with all of the walk
	w := newFixture(t, func(s *settings) {
		// Its time must not be over before all questions are open.
		flowOf(t, s, "f", "limits: {timeout: 1h}\n", anyContract, `{nodes: {a: {ask: "Go on?"}}}`)
	})
	taken := func() int64 {
		goruntime.GC()
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	before := taken()
	ids := make([]string, questions)
	for i := range ids {
		ids[i] = w.submitTo("f", chainInput{})
	}
	open := func() []api.Question {
		page, err := w.service.Questions(t.Context(), QuestionFilter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return page.Questions
	}
	var each int64
	within(t, func() bool {
		if len(open()) < questions {
			return false
		}
		each = (taken() - before) / questions
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
