package workers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// asked is a question of a program at a worker. Its request may break off; the question stays open.
type asked struct {
	over   chan struct{} // closed when it is answered
	answer run.Answer    // set before
	err    error
}

// Bounds of a question, and how many there are in an attempt.
const (
	mostQuestions = 1000
	mostAnswers   = 64
)

// answerTime is how long a worker waits for a person, before it asks again.
const answerTime = 20 * time.Second

// ask opens a question once, until the attempt's end.
func (a *relay) ask(q run.Question) (*asked, error) {
	a.asking.Lock()
	defer a.asking.Unlock()
	if one := a.asked[q.Address]; one != nil {
		return one, nil
	}
	if len(a.asked) >= mostQuestions {
		return nil, fault.New(fault.TooLarge, "an attempt asks at most %d questions", mostQuestions)
	}
	one := &asked{over: make(chan struct{})}
	a.asked[q.Address] = one
	go func() { // the attempt's end ends it
		defer close(one.over)
		one.answer, one.err = a.run.Ask(a.life, q)
	}()
	return one, nil
}

func (h face) ask(w http.ResponseWriter, r *http.Request, l *lease) error {
	var q wire.Question
	if err := read(r, wire.MaxMessage, &q); err != nil {
		return err
	}
	question, err := questionOf(q)
	if err != nil {
		return err
	}
	if err := untilOver(r.Context(), l.relay.open); err != nil {
		return err
	}
	one, err := l.relay.ask(question)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	if untilOver(ctx, one.over) != nil {
		return reply(w, wire.Answered{Pending: true})
	}
	var denied *run.Denied
	switch {
	case errors.As(one.err, &denied):
		return reply(w, wire.Answered{Denied: denied.Reason})
	case l.relay.life.Err() != nil: // the next process is asked again, or nobody wants to know
		return fault.Wrap(fault.Unavailable, one.err, "the run goes on without an answer")
	case one.err != nil:
		return one.err
	}
	return reply(w, wire.Answered{Action: one.answer.Action})
}

// questionOf is a question as people are asked it.
func questionOf(q wire.Question) (run.Question, error) {
	if q.Address == "" || len(q.Answers) == 0 || len(q.Answers) > mostAnswers {
		return run.Question{}, fault.New(fault.BadRequest, "a question has an address, and 1 to %d answers",
			mostAnswers)
	}
	if len(q.Show) > 0 {
		if _, err := contract.Decode(q.Show, wire.MaxMessage); err != nil {
			return run.Question{}, fault.Wrap(fault.BadRequest, err, "what is shown with a question isn't JSON")
		}
	}
	if err := api.CheckApprovers(q.Approvers); err != nil {
		return run.Question{}, err
	}
	asks := run.Question{
		Address: run.Bounded(q.Address, run.MaxMessage), Kind: q.Kind, Text: run.Bounded(q.Text, run.MaxMessage),
		Show: q.Show, Answers: q.Answers, Approvers: q.Approvers,
	}
	if q.Left > 0 {
		asks.Until = time.Now().Add(q.Left)
	}
	return asks, nil
}
