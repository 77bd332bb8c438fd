package orchestrator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/store"
)

// memorySteps are the steps and the questions of the runs of a memory.
type memorySteps struct {
	steps     map[string]map[stepName]store.Step // by run
	changes   int64
	questions []*store.Question
}

// stepName names a step within its run.
type stepName struct {
	address string
	try     int
}

// KeepStep implements journal.
func (m *memory) KeepStep(_ context.Context, run string, step store.Step, _ ...store.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steps == nil {
		m.steps = map[string]map[stepName]store.Step{}
	}
	if m.steps[run] == nil {
		m.steps[run] = map[stepName]store.Step{}
	}
	m.changes++
	step.Seq = m.changes
	m.steps[run][stepName{step.Address, step.Try}] = step
	return nil
}

// Steps implements journal.
func (m *memory) Steps(_ context.Context, run string, after int64, limit int) ([]store.Step, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	steps := slices.SortedFunc(maps.Values(m.steps[run]), func(a, b store.Step) int { return cmp.Compare(a.Seq, b.Seq) })
	steps = slices.DeleteFunc(steps, func(s store.Step) bool { return s.Seq <= after })
	return steps[:min(limit, len(steps))], nil
}

// StepCounts implements journal.
func (m *memory) StepCounts(_ context.Context, run string) (store.StepCounts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := store.StepCounts{}
	for _, step := range m.steps[run] {
		counts[step.State]++
	}
	return counts, nil
}

// OpenQuestion implements journal.
func (m *memory) OpenQuestion(_ context.Context, q store.Question, _ ...store.Event) (store.Question, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, known := range m.questions {
		if known.Run == q.Run && known.Address == q.Address {
			return *known, nil
		}
	}
	q.Seq = int64(len(m.questions) + 1)
	m.questions = append(m.questions, &q)
	return q, nil
}

// Question implements journal.
func (m *memory) Question(_ context.Context, id string) (store.Question, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.question(id)
	if err != nil {
		return store.Question{}, err
	}
	return *q, nil
}

// AnswerQuestion implements journal.
func (m *memory) AnswerQuestion(_ context.Context, id string, answer []byte, at time.Time, _ ...store.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.question(id)
	if err != nil {
		return err
	}
	if again, err := q.Takes(answer, at); again || err != nil {
		return err
	}
	q.Answer, q.AnsweredAt = answer, at
	return nil
}

// CloseQuestion implements journal.
func (m *memory) CloseQuestion(_ context.Context, id string, at time.Time, _ ...store.Event) (store.Question, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q, err := m.question(id)
	if err != nil {
		return store.Question{}, err
	}
	if q.Answer == nil && q.ClosedAt.IsZero() {
		q.ClosedAt = at
	}
	return *q, nil
}

// OpenQuestions implements journal.
func (m *memory) OpenQuestions(_ context.Context, run string, at time.Time, after int64, limit int) (open []store.Question, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.questions {
		isOpen := q.Answer == nil && q.ClosedAt.IsZero() && (q.Until.IsZero() || at.Before(q.Until))
		if isOpen && q.Seq > after && (run == "" || q.Run == run) && (limit == 0 || len(open) < limit) {
			open = append(open, *q)
		}
	}
	return open, nil
}

// question returns a question. It is called with the lock held.
func (m *memory) question(id string) (*store.Question, error) {
	for _, q := range m.questions {
		if q.ID == id {
			return q, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no question %.64s", id)
}
