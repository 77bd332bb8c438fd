package orchestrator

import (
	"cmp"
	"context"
	"errors"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// Ask implements handoff.Runs. The run lends its slot to others while it waits. A program that
// has gone away, or whose attempt has ended, leaves its question open for the next request.
func (c *childRuns) Ask(ctx context.Context, q handoff.Question) (handoff.Answer, error) {
	asked, err := questionFor(q)
	if err != nil {
		return handoff.Answer{}, err
	}
	asking, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	defer context.AfterFunc(ctx, func() { leave(runtime.ErrDetach) })()
	var answer run.Answer
	c.slot.Await(ctx, func() { answer, err = c.job.Ask(asking, asked) })
	var denied *run.Denied
	switch {
	case errors.Is(err, runtime.ErrDetach) || ctx.Err() != nil || !c.slot.Regain(ctx):
		return handoff.Answer{}, fault.New(fault.Unavailable, "the server ends before there is an answer").
			WithHint("the question stays open; ask again with the same Idempotency-Key")
	case errors.As(err, &denied):
		return handoff.Answer{Denied: denied.Reason}, nil
	}
	return handoff.Answer{Option: answer.Action, Filled: answer.Form, By: answer.By, Note: answer.Note}, err
}

// questionFor returns the run's question for one of its program. Under a key it is the same
// question in each attempt.
func questionFor(q handoff.Question) (asked run.Question, err error) {
	id, err := run.NewID()
	return run.Question{
		Address: cmp.Or(q.Key, id), Kind: q.Kind, Text: q.Text, Form: q.Schema, Answers: q.Options,
		Until: q.Until,
	}, err
}
