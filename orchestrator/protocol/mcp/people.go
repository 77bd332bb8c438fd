package mcp

import (
	"context"
	"log/slog"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// people answer what runs ask, by the client that called them.
type people struct {
	svc    Service
	logger *slog.Logger
}

// maxAtOnce is how many questions a client is asked at once in an answer.
const maxAtOnce = 20

// inputRequests are what a client is asked by what a run asks. refusal says why it can't be; nil: it can.
func (p people) inputRequests(
	ctx context.Context, run string, can *sdk.ClientCapabilities,
) (requests sdk.InputRequestMap, refusal *unanswered, err error) {
	questions, err := p.svc.Asked(ctx, run)
	questions = slices.DeleteFunc(questions, api.Question.IsForOthers) // the call waits for these
	if err != nil || len(questions) == 0 {
		return nil, nil, err
	}
	if !elicits(can) {
		return nil, notShown, nil
	}
	requests = sdk.InputRequestMap{}
	for _, q := range questions[:min(maxAtOnce, len(questions))] {
		e, refusal := elicit(q, Stateless)
		if refusal != nil {
			return nil, refusal, nil
		}
		requests[q.ID] = e.params
	}
	return requests, nil, nil
}

// awaitAsked waits until a run has a question open that isn't for others, or its end.
func (p people) awaitAsked(ctx context.Context, run string) {
	for event, err := range p.svc.Events(ctx, run, 0) {
		if err != nil {
			return // whoever goes on finds out why
		}
		data, err := event.Decode()
		told, isQuestion := data.(api.QuestionEvent)
		if err != nil || !isQuestion || told.State != api.QuestionOpen {
			continue
		}
		questions, err := p.svc.Asked(ctx, run)
		if err != nil || slices.ContainsFunc(questions, func(q api.Question) bool { return !q.IsForOthers() }) {
			return
		}
	}
}

// take has answers to what a run asks stored: first all are looked at. Those to what it doesn't ask any more are
// passed over. refusal says why the run was cancelled; nil: it wasn't.
func (p people) take(
	ctx context.Context, run string, given sdk.InputResponseMap,
) (refusal *unanswered, err error) {
	questions, err := p.svc.Asked(ctx, run)
	if err != nil {
		return nil, err
	}
	answers := make([]api.Answer, len(questions))
	for i, q := range questions {
		if given[q.ID] == nil {
			continue
		}
		if answers[i], refusal, err = answerTo(q, given[q.ID]); err != nil {
			return nil, invalid("%s", whyNot(err))
		}
		if refusal != nil {
			p.giveUp(ctx, run, refusal.reason)
			return refusal, nil
		}
	}
	for i, q := range questions {
		if given[q.ID] == nil {
			continue
		}
		err := p.svc.Answer(ctx, q.ID, answers[i])
		switch {
		case err == nil, fault.Is(err, fault.Conflict): // somebody else was faster
		case fault.Is(err, fault.Input), fault.Is(err, fault.TooLarge), fault.Is(err, fault.Forbidden):
			return nil, invalid("%s", whyNot(err))
		default:
			return nil, err
		}
	}
	return nil, nil
}

// answerTo is what a client says to a question.
func answerTo(q api.Question, given sdk.InputResponse) (api.Answer, *unanswered, error) {
	said, isResult := given.(*sdk.ElicitResult)
	if !isResult {
		return api.Answer{}, nil, fault.New(fault.Input, "the answer to elicitation/create has an action")
	}
	e, refusal := elicit(q, Stateless)
	if refusal != nil {
		return api.Answer{}, refusal, nil
	}
	return e.answer(said)
}

// cancelTime is how long cancelling a run may take.
const cancelTime = 10 * time.Second

// giveUp cancels a run that nobody waits for any more, or answers.
func (p people) giveUp(ctx context.Context, id, reason string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	if _, err := p.svc.Cancel(ctx, id, reason); err != nil && !fault.Is(err, fault.Conflict) {
		p.logger.WarnContext(ctx, "run not cancelled", "run", id, fault.LogAttr(err))
	}
}
