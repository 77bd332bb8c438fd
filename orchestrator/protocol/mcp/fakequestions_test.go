package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// fakeQuestions are what the runs of a fakeService ask people.
type fakeQuestions struct {
	mu      sync.Mutex
	each    []api.Question // what each run asks when it begins
	all     []*fakeQuestion
	changed chan struct{}
}

type fakeQuestion struct {
	api.Question
	answer *api.Answer
}

// change does something and wakes who waits.
func (x *fakeQuestions) change(do func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	do()
	if x.changed != nil {
		close(x.changed)
	}
	x.changed = nil
}

func (x *fakeQuestions) next() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.changed == nil {
		x.changed = make(chan struct{})
	}
	return x.changed
}

func (x *fakeQuestions) of(run string) (found []fakeQuestion) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.all {
		if q.Run == run {
			found = append(found, *q)
		}
	}
	return found
}

func (x *fakeQuestions) open(run string) (open []api.Question) {
	for _, q := range x.of(run) {
		if q.answer == nil {
			open = append(open, q.Question)
		}
	}
	return open
}

// tell yields what happens to the questions of a run, until ctx ends.
func (x *fakeQuestions) tell(ctx context.Context, run string, yield func(api.Event, error) bool) {
	told := map[string]bool{}
	for {
		changed := x.next()
		for _, q := range x.of(run) {
			state := api.QuestionOpen
			if q.answer != nil {
				state = api.QuestionAnswered
			}
			key := fmt.Sprint(q.ID, state)
			if told[key] {
				continue
			}
			told[key] = true
			raw, _ := json.Marshal(api.QuestionEvent{ID: q.ID, State: state})
			if !yield(api.Event{Type: api.EventQuestion, Data: raw}, nil) {
				return
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// ask has a run ask something.
func (f *fakeService) ask(r *api.Record, q api.Question) {
	f.asking.change(func() {
		q.Run, q.Unit, q.ID = r.ID, r.Unit, fmt.Sprintf("0198c0de-0000-7000-9000-%012d", len(f.asking.all)+1)
		f.asking.all = append(f.asking.all, &fakeQuestion{Question: q})
	})
}

func (f *fakeService) AwaitAsked(ctx context.Context, id string) (api.Record, error) {
	return f.await(ctx, id, func(r api.Record) bool { return r.Outcome != "" || r.Question != nil })
}

func (f *fakeService) Asked(_ context.Context, run string) ([]api.Question, error) {
	return f.asking.open(run), nil
}

// Answer keeps an answer. A run ends with its last one, and gives back all of them.
func (f *fakeService) Answer(_ context.Context, id string, answer api.Answer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var run string
	var err error
	f.asking.change(func() {
		at := slices.IndexFunc(f.asking.all, func(q *fakeQuestion) bool { return q.ID == id })
		q := f.asking.all[at]
		if err = q.takes(answer); err == nil {
			q.answer, run = &answer, q.Run
		}
	})
	if err != nil || len(f.asking.open(run)) > 0 {
		return err
	}
	var given []api.Answer
	for _, q := range f.asking.of(run) {
		given = append(given, *q.answer)
	}
	r := f.runs[run]
	r.State, r.Outcome = api.Completed, api.Success
	r.Output, _ = json.Marshal(map[string]any{"answers": given})
	f.asking.change(func() {})
	return nil
}

// takes holds an answer against the question, as the orchestrator does.
func (q *fakeQuestion) takes(answer api.Answer) error {
	if q.answer != nil {
		return fault.New(fault.Conflict, "the question has another answer already")
	}
	if !slices.Contains(q.Answers, answer.Action) {
		return fault.New(fault.Input, "the question has no answer %s", fault.Quote(answer.Action))
	}
	if q.Form == nil || answer.Form == nil {
		return nil
	}
	payload, err := contract.Decode(answer.Form, 1<<20)
	if err != nil {
		return err
	}
	schema, _ := contract.Compile(q.Form)
	if findings := schema.Validate(payload); len(findings) > 0 {
		return fault.New(fault.Input, "what is filled in breaks the form of the question").WithFindings(findings)
	}
	return nil
}
