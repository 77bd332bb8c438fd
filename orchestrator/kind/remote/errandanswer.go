package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// textForm is the form of an answer that is a text.
const textForm = `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],` +
	`"additionalProperties":false}`

// mostGrace is how often a status is looked at again whose question is answered: some agents tell of it once more
// before they go on.
const mostGrace = 5

// errMovedOn is why nobody has to answer any more.
var errMovedOn = errors.New("the agent goes on without an answer")

// answer gives the agent what its task waits for: an answer that was kept, or that of a person.
func (e *errand) answer(ctx context.Context) error {
	if a := e.kept.Answering; a != nil && a.Mark == e.task.Mark {
		return e.deliver(ctx)
	}
	if e.kept.Answering = nil; e.task.Mark == e.answered && e.grace < mostGrace {
		e.grace++
		return e.look(ctx)
	}
	text, err := e.askPerson(ctx)
	if errors.Is(err, errMovedOn) {
		return nil
	}
	if err != nil {
		return err
	}
	e.kept.Asked++
	e.kept.Answering = &answering{Mark: e.task.Mark, Message: a2apeer.Message{
		ID: e.answerID(e.kept.Asked), Task: e.kept.Task, Context: e.kept.Context,
		Parts: []a2apeer.Part{a2apeer.TextPart(text)},
	}}
	if err := e.keep(); err != nil {
		return err
	}
	return e.deliver(ctx)
}

// deliver sends the answer that is kept. Where nobody knows whether it came, the task's next status tells: it goes
// again under the same id if the question still stands.
func (e *errand) deliver(ctx context.Context) error {
	err := e.say(ctx, e.kept.Answering.Message)
	var silent *streamless
	var refused *a2apeer.Refusal
	switch {
	case err == nil:
		e.answered, e.grace, e.tries = e.kept.Answering.Mark, 0, 0
		e.kept.Answering = nil
		return nil
	case isLost(err) || errors.As(err, &silent):
		return e.look(ctx)
	case errors.As(err, &refused):
		return e.refusedAnswer(ctx, refused)
	}
	return err
}

// refusedAnswer looks at a task whose agent did not take the answer. It may have gone on by itself, or take the answer
// after a while: some agents ask before they are ready to be answered, and some that wait for access see for themselves
// when they have it.
func (e *errand) refusedAnswer(ctx context.Context, refused *a2apeer.Refusal) error {
	if err := e.look(ctx); err != nil || e.task.Mark != e.kept.Answering.Mark {
		return err
	}
	e.tries++
	if refused.Fault.Kind == fault.Internal && (e.tries <= mostGrace || e.task.State == a2apeer.AuthRequired) {
		return nil
	}
	return refused
}

// askPerson asks people what the agent wants to know. The run lends its slot to others meanwhile. The error is
// errMovedOn, a *run.Denied, a fault, or a hostError.
func (e *errand) askPerson(ctx context.Context) (text string, err error) {
	asking, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	watched := make(chan a2apeer.Task, 1)
	go func() { watched <- e.watch(asking, leave) }()
	var answer run.Answer
	aside := e.Aside(ctx, func() { answer, err = e.Ask(asking, e.question()) })
	leave(nil)
	newer := <-watched
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, errMovedOn):
		if err := e.hear(newer); err != nil {
			return "", err
		}
		return "", errMovedOn
	case err != nil || aside != nil:
		return "", errors.Join(err, aside)
	case answer.Action == handoff.Reject:
		return "", &run.Denied{Reason: "the agent asked, and a person said no"}
	}
	if given, ok := answer.Form["answer"].(string); ok {
		return given, nil
	}
	return answer.Action, nil
}

// question is what people are asked while the task stands as it does.
func (e *errand) question() run.Question {
	q := run.Question{Address: e.questionAddress(), Kind: api.QuestionInput, Text: e.hide(e.task.Words)}
	q.Answers, q.Form = []string{handoff.Reply, handoff.Reject}, json.RawMessage(textForm)
	if e.task.State == a2apeer.AuthRequired {
		q.Kind, q.Answers, q.Form = api.QuestionAuth, []string{handoff.Approve, handoff.Reject}, nil
	}
	if q.Text == "" {
		q.Text = "The agent waits for an answer, and doesn't say for which."
	}
	return q
}

// questionAddress names the question within the run, alike in each process.
func (e *errand) questionAddress() string { return fmt.Sprintf("a2a/%d", e.kept.Asked+1) }

// watch looks at the task while a person is asked, and returns it when it goes on by itself: then nobody has to answer.
func (e *errand) watch(ctx context.Context, leave context.CancelCauseFunc) (task a2apeer.Task) {
	for pause.For(ctx, longWait) == nil {
		task, err := e.agent.Get(ctx, e.kept.Task)
		if err == nil && task.Mark != e.task.Mark {
			leave(errMovedOn)
			return task
		}
	}
	return task
}
