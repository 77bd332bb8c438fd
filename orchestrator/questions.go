package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/runtime"
)

// Ask implements run.Host. The question is stored, and its answer is stored before it is heard
// here. A run that lives with its caller asks that instead.
func (j *job) Ask(ctx context.Context, q run.Question) (run.Answer, error) {
	q = j.MaskedQuestion(q)
	if j.answer != nil {
		return j.answer(ctx, q)
	}
	if err := j.unattended(q); err != nil {
		return run.Answer{}, err
	}
	ctx, cancel := until(ctx, q.Until)
	defer cancel()
	row, err := j.openQuestion(ctx, q)
	if err != nil {
		return run.Answer{}, err
	}
	if deadline, bounded := ctx.Deadline(); q.Alone && bounded && row.Answer == nil && ctx.Err() == nil {
		return run.Answer{}, &run.Asks{Question: row.ID, Until: deadline}
	}
	heard, leave := j.loop.answers.await(row.ID)
	defer leave()
	for {
		if row, err = j.loop.questionAside(context.WithoutCancel(ctx), row.ID); err != nil {
			return run.Answer{}, err
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

// awaitAnswer returns when a question is answered or its time is up, or when ctx has ended. The
// error is a fault, or says that this process has to stop.
func (j *job) awaitAnswer(ctx context.Context, asks *run.Asks) error {
	heard, leave := j.loop.answers.await(asks.Question)
	defer leave()
	if answered, err := j.loop.isAnswered(ctx, asks.Question); answered || err != nil {
		return err
	}
	timer := time.NewTimer(time.Until(asks.Until))
	defer timer.Stop()
	select {
	case <-heard:
	case <-timer.C:
	case <-ctx.Done():
	case <-j.loop.begin.Done():
	}
	return detached(j.loop.begin, nil)
}

func (l *loop) isAnswered(ctx context.Context, question string) (bool, error) {
	row, err := l.questionAside(context.WithoutCancel(ctx), question)
	return row.Answer != nil, err
}

// questionAside reads a question, and leaves the caller's stack as small as it is.
func (l *loop) questionAside(ctx context.Context, id string) (row store.Question, err error) {
	aside(func() { row, err = l.store.Question(ctx, id) })
	return row, err
}

// aside does something on a goroutine of its own and waits for it. JSON and SQLite need a deep
// stack, and a goroutine that waits for days keeps the deepest one that it ever needed.
func aside(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
}

// unattended returns a *run.Denied where nobody can answer the run's questions.
func (j *job) unattended(q run.Question) error {
	switch {
	case !j.Durable:
		return &run.Denied{
			Reason: "it asks a person, and nobody is there to answer",
			Hint:   "give the answer with --answer " + q.Address + "=ACTION",
		}
	case j.private.Unattended:
		return &run.Denied{
			Reason: "it asks a person, and was submitted as one that nobody attends to",
			Hint:   "submit it without \"unattended\"",
		}
	}
	return nil
}

// until returns a context that ends at the end of a question's time. A deadline of the caller's
// that comes no later has its own cause.
func until(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); end.IsZero() || ok && !end.Before(deadline) {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, end, &run.Denied{Reason: "nobody has answered in time"})
}

// openQuestion stores a question, or finds it as an earlier process stored it. It tries until ctx ends:
// who asked is gone then.
func (j *job) openQuestion(ctx context.Context, q run.Question) (row store.Question, err error) {
	id, err := run.NewID()
	if err != nil {
		return row, err
	}
	asked := store.Question{
		ID: id, Run: j.ID, Address: q.Address, Kind: string(q.Kind), Text: q.Text, Show: q.Show,
		Form: q.Form, Until: q.Until, AskedAt: time.Now().UTC(),
	}
	if asked.Answers, err = json.Marshal(q.Answers); err != nil {
		return row, err
	}
	event := api.QuestionEvent{ID: id, Address: q.Address, State: api.QuestionOpen}
	err = j.loop.persist(ctx, "open question", j.ID, func() (err error) {
		row, err = j.loop.store.OpenQuestion(context.WithoutCancel(ctx), asked, newEvent(asked.AskedAt, event))
		return err
	})
	if err == nil && q.Kind != "" && !isSame(row, asked) {
		return row, fault.New(fault.Input, "the key belongs to another question of this run").
			WithHint("send another Idempotency-Key with another question")
	}
	j.asks.Store(true)
	j.opened.Notify()
	if err == nil && row.ID == id {
		j.Tell(run.Event{Question: &event})
		j.news.Notify()
	}
	return row, err
}

// isSame reports whether two questions ask the same. How long they are open may differ.
func isSame(a, b store.Question) bool {
	return a.Kind == b.Kind && a.Text == b.Text && bytes.Equal(a.Form, b.Form) && bytes.Equal(a.Answers, b.Answers) &&
		bytes.Equal(a.Show, b.Show)
}

// closeQuestions closes the questions that are open at the end of the run.
func (j *job) closeQuestions(ctx context.Context) error {
	for j.asks.Load() {
		rows, err := j.loop.store.OpenQuestions(context.WithoutCancel(ctx), j.ID, time.Time{}, 0, 0)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			if _, err := j.close(ctx, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// closeQuestion closes a question because ctx has ended, unless the next process goes on with
// it. An answer that came before counts.
func (j *job) closeQuestion(ctx context.Context, row store.Question) (answer run.Answer, err error) {
	cause := context.Cause(ctx)
	if errors.Is(cause, runtime.ErrDetach) {
		return answer, cause
	}
	row, err = j.close(ctx, row)
	switch {
	case err != nil:
		return answer, err
	case row.Answer != nil:
		return answerOf(row)
	}
	return answer, cause
}

// close closes a question unless it is answered, and returns it as it stands then.
func (j *job) close(ctx context.Context, row store.Question) (store.Question, error) {
	event := api.QuestionEvent{ID: row.ID, Address: row.Address, State: api.QuestionClosed}
	now := time.Now().UTC()
	err := j.loop.persist(j.loop.life, "close question", j.ID, func() (err error) {
		row, err = j.loop.store.CloseQuestion(context.WithoutCancel(ctx), row.ID, now, newEvent(now, event))
		return err
	})
	if err == nil && row.Answer == nil {
		j.Tell(run.Event{Question: &event})
		j.news.Notify()
	}
	return row, err
}

// answerOf reads the answer of a question. The error is a fault.
func answerOf(row store.Question) (run.Answer, error) {
	var told api.Answer
	if err := json.Unmarshal(row.Answer, &told); err != nil {
		return run.Answer{}, undecodable(err)
	}
	answer := run.Answer{Action: told.Action, By: told.By, Note: told.Note, At: row.AnsweredAt}
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
	waiting map[string]*waiters // by question
}

// waiters are those who wait for one answer: a program may ask again before it was heard of
// that nobody reads the answer to its first request.
type waiters struct {
	heard chan struct{}
	count int
}

// await returns a channel that is closed when the question is answered. leave must follow.
func (a *answers) await(question string) (heard <-chan struct{}, leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]*waiters{}
	}
	w := a.waiting[question]
	if w == nil {
		w = &waiters{heard: make(chan struct{})}
		a.waiting[question] = w
	}
	w.count++
	return w.heard, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if w.count--; w.count == 0 && a.waiting[question] == w {
			delete(a.waiting, question)
		}
	}
}

func (a *answers) notify(question string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.waiting[question]; w != nil {
		close(w.heard)
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
	limit, err := api.PageLimit(f.Limit)
	if err != nil {
		return api.QuestionPage{}, err
	}
	rows, err := s.store.OpenQuestions(ctx, f.Run, time.Now(), f.After, limit)
	page := api.QuestionPage{Questions: make([]api.Question, 0, len(rows))}
	for _, row := range rows {
		if !access.Sees(ctx, row.MadeBy) {
			continue
		}
		q, err := shownQuestion(row)
		if err != nil {
			return api.QuestionPage{}, err
		}
		page.Questions = append(page.Questions, q)
	}
	if store.Full(rows, limit) {
		page.Next = &rows[len(rows)-1].Seq
	}
	return page, err
}

// Question returns a question, also one that is answered or closed, or a NotFound fault.
func (s *Service) Question(ctx context.Context, id string) (api.Question, error) {
	row, err := s.question(ctx, id)
	if err != nil {
		return api.Question{}, err
	}
	return shownQuestion(row)
}

// question returns what is stored of a question of a run that the client of ctx may know of.
func (s *Service) question(ctx context.Context, id string) (store.Question, error) {
	row, err := s.store.Question(ctx, id)
	if err == nil && !access.Sees(ctx, row.MadeBy) {
		return store.Question{}, store.UnknownQuestion(id)
	}
	return row, err
}

func shownQuestion(row store.Question) (api.Question, error) {
	q := api.Question{
		ID: row.ID, Run: row.Run, Unit: row.Unit, Address: row.Address, Kind: api.QuestionKind(row.Kind),
		Text: row.Text, Show: row.Show, Form: row.Form,
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
	return s.answer(ctx, id, answer, store.Key{})
}

// answer stores an answer with the key that it has in its run.
func (s *Service) answer(ctx context.Context, id string, answer api.Answer, key store.Key) error {
	if err := s.admits(ctx); err != nil {
		return err
	}
	row, err := s.question(ctx, id)
	if err != nil {
		return err
	}
	raw, err := checkedAnswer(row, answer)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	event := api.QuestionEvent{ID: id, Address: row.Address, State: api.QuestionAnswered}
	if err := s.store.AnswerQuestion(ctx, key, id, raw, now, newEvent(now, event)); err != nil {
		return err
	}
	s.answers.notify(id)
	if j := s.job(row.Run); j != nil {
		j.news.Notify()
	}
	return nil
}
