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

// answers gives the agent answers to what its task asks.
type answers struct {
	t        *remoteTask
	answered string // the mark of the status whose question was answered last
	grace    int    // how often that status was seen since
	tries    int    // how often the answer that is kept was not taken
}

// answer gives the agent what its task waits for: an answer that was kept, or that of a person.
func (a *answers) answer(ctx context.Context) error {
	if kept := a.t.kept.Answering; kept != nil && kept.Mark == a.t.task.Mark {
		return a.deliver(ctx)
	}
	if a.t.kept.Answering = nil; a.t.task.Mark == a.answered && a.grace < mostGrace {
		a.grace++
		return a.t.look(ctx)
	}
	text, err := a.askPerson(ctx)
	if errors.Is(err, errMovedOn) {
		return nil
	}
	if err != nil {
		return err
	}
	a.t.kept.Asked++
	a.t.kept.Answering = &answering{Mark: a.t.task.Mark, Message: a2apeer.Message{
		ID: a.messageID(a.t.kept.Asked), Task: a.t.kept.Task, Context: a.t.kept.Context,
		Parts: []a2apeer.Part{a2apeer.TextPart(text)},
	}}
	if err := a.t.keep(); err != nil {
		return err
	}
	return a.deliver(ctx)
}

// deliver sends the answer that is kept. Where nobody knows whether it came, the task's next status tells: it goes
// again under the same id if the question still stands.
func (a *answers) deliver(ctx context.Context) error {
	err := a.t.say(ctx, a.t.kept.Answering.Message)
	var silent *streamless
	var refused *a2apeer.Refusal
	switch {
	case err == nil:
		a.answered, a.grace, a.tries = a.t.kept.Answering.Mark, 0, 0
		a.t.kept.Answering = nil
		return nil
	case isLost(err) || errors.As(err, &silent):
		return a.t.look(ctx)
	case errors.As(err, &refused):
		return a.refused(ctx, refused)
	}
	return err
}

// refused looks at a task whose agent did not take the answer. It may have gone on by itself, or take the answer
// after a while: some agents ask before they are ready to be answered, and some that wait for access see for themselves
// when they have it.
func (a *answers) refused(ctx context.Context, refused *a2apeer.Refusal) error {
	if err := a.t.look(ctx); err != nil || a.t.task.Mark != a.t.kept.Answering.Mark {
		return err
	}
	a.tries++
	if refused.Fault.Kind == fault.Internal && (a.tries <= mostGrace || a.t.task.State == a2apeer.AuthRequired) {
		return nil
	}
	return refused
}

// askPerson asks people what the agent wants to know. The run lends its slot to others meanwhile. The error is
// errMovedOn, a *run.Denied, a fault, or a hostError.
func (a *answers) askPerson(ctx context.Context) (text string, err error) {
	asking, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	watched := make(chan a2apeer.Task, 1)
	go func() { watched <- a.watch(asking, leave) }()
	var answer run.Answer
	aside := a.t.x.Aside(ctx, func() { answer, err = a.t.x.Ask(asking, a.question()) })
	leave(nil)
	newer := <-watched
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, errMovedOn):
		if err := a.t.observe(newer); err != nil {
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
func (a *answers) question() run.Question {
	q := run.Question{Address: a.address(), Kind: api.QuestionInput, Text: a.t.x.hide(a.t.task.Words)}
	q.Answers, q.Form = []string{handoff.Reply, handoff.Reject}, json.RawMessage(textForm)
	if a.t.task.State == a2apeer.AuthRequired {
		q.Kind, q.Answers, q.Form = api.QuestionAuth, []string{handoff.Approve, handoff.Reject}, nil
	}
	if q.Text == "" {
		q.Text = "The agent waits for an answer, and doesn't say for which."
	}
	return q
}

// address names the question within the run, alike in each process.
func (a *answers) address() string { return fmt.Sprintf("a2a/%d", a.t.kept.Asked+1) }

// watch looks at the task while a person is asked, and returns it when it goes on by itself: then nobody has to answer.
func (a *answers) watch(ctx context.Context, leave context.CancelCauseFunc) (task a2apeer.Task) {
	for pause.For(ctx, longWait) == nil {
		task, err := a.t.agent.Get(ctx, a.t.kept.Task)
		if err == nil && task.Mark != a.t.task.Mark {
			leave(errMovedOn)
			return task
		}
	}
	return task
}

// messageID is the id of the message with the nth answer. It is the same in each process.
func (a *answers) messageID(n int) string { return fmt.Sprintf("%s-%d", a.t.x.ID, n) }
