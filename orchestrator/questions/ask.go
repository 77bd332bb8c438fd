package questions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/runtime"
)

// Ask implements run.People: the question is stored, and its answer is stored before it is heard here.
func (g *Registry) Ask(ctx context.Context, r *run.Run, q run.Question) (run.Answer, error) {
	if r.Unattended {
		return run.Answer{}, &run.Denied{
			Reason: "it asks a person, and was submitted as one that nobody attends to",
			Hint:   "submit it without \"unattended\"",
		}
	}
	ctx, cancel := within(ctx, q.Until)
	defer cancel()
	row, err := g.open(ctx, r, q)
	if err != nil {
		return run.Answer{}, err
	}
	if deadline, bounded := ctx.Deadline(); q.Alone && bounded && row.Answer == nil && ctx.Err() == nil {
		return run.Answer{}, g.suspended(r, row.ID, deadline)
	}
	answered, leave := g.await(row.ID)
	defer leave()
	for {
		if row, err = g.read(context.WithoutCancel(ctx), row.ID); err != nil {
			return run.Answer{}, err
		}
		if row.Answer != nil {
			return answerOf(row)
		}
		select {
		case <-answered:
		case <-ctx.Done():
			return g.giveUp(ctx, r, row)
		}
	}
}

// within returns a context that ends at the end of a question's time. A deadline of the caller's
// that comes no later has its own cause.
func within(ctx context.Context, end time.Time) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); end.IsZero() || ok && !end.Before(deadline) {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, end, &run.Denied{Reason: "nobody has answered in time"})
}

// suspended has an attempt wait without anything of its own until a question is answered, or its time is up.
func (g *Registry) suspended(r *run.Run, question string, end time.Time) *run.Suspended {
	return &run.Suspended{Wait: func(ctx context.Context) error {
		answered, leave := g.await(question)
		defer leave()
		if row, err := g.read(context.WithoutCancel(ctx), question); row.Answer != nil || err != nil {
			return err
		}
		waiting, stop := r.Waiting(ctx)
		defer stop()
		timer := time.NewTimer(time.Until(end))
		defer timer.Stop()
		select {
		case <-answered:
		case <-timer.C:
		case <-waiting.Done():
			if errors.Is(context.Cause(waiting), runtime.ErrDetach) {
				return runtime.ErrDetach
			}
		}
		return nil
	}}
}

// read reads a question, and leaves the caller's stack as small as it is: it may wait for days.
func (g *Registry) read(ctx context.Context, id string) (row store.Question, err error) {
	run.OnFreshStack(func() { row, err = g.opts.Questions.Get(ctx, id) })
	return row, err
}

// open stores a question, or finds it as an earlier process stored it. It tries until ctx ends: who asked is gone then.
func (g *Registry) open(ctx context.Context, r *run.Run, q run.Question) (row store.Question, err error) {
	id, err := run.NewID()
	if err != nil {
		return row, err
	}
	asked := store.Question{
		ID: id, Run: r.ID, Address: q.Address, Kind: string(q.Kind), Text: q.Text, Show: q.Show,
		Form: q.Form, Until: q.Until, AskedAt: time.Now().UTC(),
	}
	if asked.Answers, err = json.Marshal(q.Answers); err != nil {
		return row, err
	}
	if asked.Approvers, err = approversText(q.Approvers); err != nil {
		return row, err
	}
	event := api.QuestionEvent{ID: id, Address: q.Address, State: api.QuestionOpen}
	err = g.opts.Persist(ctx, "open question", r.ID, func() (err error) {
		row, err = g.opts.Questions.Open(context.WithoutCancel(ctx), asked, stored(asked.AskedAt, event))
		return err
	})
	if err == nil && q.Kind != "" && !isSame(row, asked) {
		return row, fault.New(fault.Input, "the key belongs to another question of this run").
			WithHint("send another Idempotency-Key with another question")
	}
	g.Resume(r.ID)
	g.wake(r.ID)
	if err == nil && row.ID == id {
		r.Show(event)
		g.opts.News(r.ID)
	}
	return row, err
}

func stored(at time.Time, e api.QuestionEvent) store.Event {
	return store.NewEvent(at, string(e.EventType()), e)
}

// isSame reports whether two questions ask the same. How long they are open may differ.
func isSame(a, b store.Question) bool {
	return a.Kind == b.Kind && a.Text == b.Text && bytes.Equal(a.Form, b.Form) && bytes.Equal(a.Answers, b.Answers) &&
		bytes.Equal(a.Show, b.Show)
}

// Resume notes that a run may have open questions, as those that an earlier process left.
func (g *Registry) Resume(run string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asking[run] = true
}

// Close closes the questions that are open at the end of a run.
func (g *Registry) Close(ctx context.Context, r *run.Run) error {
	for g.asks(r.ID) {
		rows, err := g.opts.Questions.List(context.WithoutCancel(ctx), store.QuestionFilter{Run: r.ID})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			if _, err := g.close(ctx, r, row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Registry) asks(run string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asking[run]
}

// Forget drops what is known of a run that this process leads no more.
func (g *Registry) Forget(run string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.asking, run)
}

// giveUp closes a question because ctx has ended, unless the next process goes on with
// it. An answer that came before counts.
func (g *Registry) giveUp(ctx context.Context, r *run.Run, row store.Question) (answer run.Answer, err error) {
	cause := context.Cause(ctx)
	if errors.Is(cause, runtime.ErrDetach) {
		return answer, cause
	}
	row, err = g.close(ctx, r, row)
	switch {
	case err != nil:
		return answer, err
	case row.Answer != nil:
		return answerOf(row)
	}
	return answer, cause
}

// close closes a question unless it is answered, and returns it as it stands then.
func (g *Registry) close(ctx context.Context, r *run.Run, row store.Question) (store.Question, error) {
	event := api.QuestionEvent{ID: row.ID, Address: row.Address, State: api.QuestionClosed}
	now := time.Now().UTC()
	ctx = context.WithoutCancel(ctx)
	err := g.opts.Persist(ctx, "close question", r.ID, func() (err error) {
		row, err = g.opts.Questions.Close(ctx, row.ID, now, stored(now, event))
		return err
	})
	if err == nil && row.Answer == nil {
		r.Show(event)
		g.opts.News(r.ID)
	}
	return row, err
}
