package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/flow"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/store"
)

// kindUnanswered is the kind of the failure of a question that nobody is there to answer.
const kindUnanswered = "unanswered"

// Ask implements run.Host. The question is stored, and its answer is stored before it is heard
// here. A run that lives with its caller asks that instead.
func (j *job) Ask(ctx context.Context, q flow.Question) (flow.Answer, error) {
	if j.answer != nil {
		return j.answer(ctx, q)
	}
	if !j.Durable {
		return flow.Answer{}, &flow.CallError{Failure: flow.Failure{
			Node: q.Address, Category: string(api.CategoryPermanent), Kind: kindUnanswered,
			Message: "it asks a person, and nobody is there to answer", Hint: "give the answer with --answer " + q.Address + "=ACTION",
		}}
	}
	row, err := j.openQuestion(ctx, q)
	if err != nil {
		return flow.Answer{}, err
	}
	heard, leave := j.loop.answers.await(row.ID)
	defer leave()
	for {
		if row, err = j.loop.journal.Question(context.WithoutCancel(ctx), row.ID); err != nil {
			return flow.Answer{}, err
		}
		if row.Answer != nil {
			return answerOf(row)
		}
		select {
		case <-heard:
		case <-ctx.Done():
			return j.closeQuestion(ctx, row)
		}
	}
}

// openQuestion stores a question, or finds it as an earlier process stored it.
func (j *job) openQuestion(ctx context.Context, q flow.Question) (row store.Question, err error) {
	id, err := run.NewID()
	if err != nil {
		return row, err
	}
	asked := store.Question{ID: id, Run: j.ID, Address: q.Address, Text: q.Text, Form: q.Form, Until: q.Until, AskedAt: time.Now().UTC()}
	if asked.Answers, err = json.Marshal(q.Answers); err != nil {
		return row, err
	}
	if len(q.Show) > 0 {
		if asked.Show, err = flow.Encode(q.Show); err != nil {
			return row, err
		}
	}
	event := api.QuestionEvent{ID: id, Address: q.Address, State: api.QuestionOpen}
	err = j.loop.persist("open question", j.ID, func() (err error) {
		row, err = j.loop.journal.OpenQuestion(context.WithoutCancel(ctx), asked, newEvent(asked.AskedAt, event))
		return err
	})
	if err == nil && row.ID == id {
		j.Tell(run.Event{Question: &event})
		j.news.notify()
	}
	return row, err
}

// closeQuestion closes a question because ctx has ended, unless the next process goes on with
// it. An answer that came before counts.
func (j *job) closeQuestion(ctx context.Context, row store.Question) (answer flow.Answer, err error) {
	cause := context.Cause(ctx)
	if errors.Is(cause, runtime.ErrDetach) {
		return answer, cause
	}
	event := api.QuestionEvent{ID: row.ID, Address: row.Address, State: api.QuestionClosed}
	now := time.Now().UTC()
	err = j.loop.persist("close question", j.ID, func() (err error) {
		row, err = j.loop.journal.CloseQuestion(context.WithoutCancel(ctx), row.ID, now, newEvent(now, event))
		return err
	})
	switch {
	case err != nil:
		return answer, err
	case row.Answer != nil:
		return answerOf(row)
	}
	j.Tell(run.Event{Question: &event})
	j.news.notify()
	return answer, cause
}

// answerOf reads the answer of a question. The error is a fault.
func answerOf(row store.Question) (flow.Answer, error) {
	var told api.Answer
	if err := json.Unmarshal(row.Answer, &told); err != nil {
		return flow.Answer{}, undecodable(err)
	}
	answer := flow.Answer{Action: told.Action, By: told.By, Note: told.Note, At: row.AnsweredAt}
	if told.Form == nil {
		return answer, nil
	}
	form, err := decodeObject(told.Form)
	answer.Form = form
	return answer, err
}

// answers wakes those who wait for the answer to a question.
type answers struct {
	mu      sync.Mutex
	waiting map[string]chan struct{} // by question
}

// await returns a channel that is closed when the question is answered. leave must follow.
func (a *answers) await(question string) (heard <-chan struct{}, leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]chan struct{}{}
	}
	c := make(chan struct{})
	a.waiting[question] = c
	return c, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.waiting[question] == c {
			delete(a.waiting, question)
		}
	}
}

func (a *answers) notify(question string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.waiting[question]; c != nil {
		close(c)
		delete(a.waiting, question)
	}
}

// QuestionFilter selects open questions.
type QuestionFilter struct {
	Run   string // "": of all
	After int64  // as a page before had it
	Limit int    // 1..1000; 0 is 100
}

// Questions lists the open questions, the oldest first.
func (s *Service) Questions(ctx context.Context, f QuestionFilter) (api.QuestionPage, error) {
	limit, err := limitOf(f.Limit)
	if err != nil {
		return api.QuestionPage{}, err
	}
	rows, err := s.store.OpenQuestions(ctx, f.Run, f.After, limit)
	page := api.QuestionPage{Questions: make([]api.Question, 0, len(rows))}
	for _, row := range rows {
		q, err := shownQuestion(row)
		if err != nil {
			return api.QuestionPage{}, err
		}
		page.Questions = append(page.Questions, q)
	}
	if len(rows) == limit {
		page.Next = &rows[limit-1].Seq
	}
	return page, err
}

// Question returns a question, also one that is answered or closed, or a NotFound fault.
func (s *Service) Question(ctx context.Context, id string) (api.Question, error) {
	row, err := s.store.Question(ctx, id)
	if err != nil {
		return api.Question{}, err
	}
	return shownQuestion(row)
}

func shownQuestion(row store.Question) (api.Question, error) {
	q := api.Question{
		ID: row.ID, Run: row.Run, Unit: row.Unit, Address: row.Address, Text: row.Text, Show: row.Show, Form: row.Form,
		Until: orNil(row.Until), AskedAt: row.AskedAt,
	}
	if err := json.Unmarshal(row.Answers, &q.Answers); err != nil {
		return q, undecodable(err)
	}
	return q, nil
}

// Answer stores the answer to a question, and then has its run go on. The first answer counts:
// the same again changes nothing, another one is a Conflict fault.
func (s *Service) Answer(ctx context.Context, id string, answer api.Answer) error {
	if err := s.admits(ctx); err != nil {
		return err
	}
	row, err := s.store.Question(ctx, id)
	if err != nil {
		return err
	}
	raw, err := checkedAnswer(row, answer)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	event := api.QuestionEvent{ID: id, Address: row.Address, State: api.QuestionAnswered}
	if err := s.store.AnswerQuestion(ctx, id, raw, now, newEvent(now, event)); err != nil {
		return err
	}
	s.answers.notify(id)
	if j := s.job(row.Run); j != nil {
		j.news.notify()
	}
	return nil
}
