package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// maxAtOnce is how many questions a client is asked at once in an answer.
const maxAtOnce = 20

// inputRequired answers a call whose client has to come back with answers.
type inputRequired struct {
	sdk.ResultBase
	ResultType    string              `json:"resultType"`
	InputRequests sdk.InputRequestMap `json:"inputRequests"`
	RequestState  string              `json:"requestState"`
}

// asked answers a call whose run asks something.
func (c *calls) asked(ctx context.Context, req *sdk.CallToolRequest, record api.Record) (sdk.Result, error) {
	requests, refusal, err := c.inputRequests(ctx, record.ID, req.ClientCapabilities())
	switch {
	case err != nil:
		return refused(ctx, err, record.ID)
	case hearingOf(ctx).Err() != nil:
		refusal = gone
	}
	switch {
	case refusal != nil:
		c.giveUp(ctx, record.ID, refusal.reason)
		return refusal.problem(record.ID).result(), nil
	case len(requests) == 0: // somebody has answered it
		return c.follow(ctx, req, record)
	case knowsTasks(req):
		return taskOf(record, "task"), nil // which says what it asks
	}
	questions := make([]string, 0, len(requests))
	for id := range requests {
		questions = append(questions, id)
	}
	return &inputRequired{
		ResultType: "input_required", InputRequests: requests,
		RequestState: c.rounds.begin(ctx, req, record.ID, questions),
	}, nil
}

// inputRequests are what a client is asked by what a run asks. refusal says why it can't be; nil: it can.
func (c *calls) inputRequests(
	ctx context.Context, run string, can *sdk.ClientCapabilities,
) (requests sdk.InputRequestMap, refusal *unanswered, err error) {
	questions, err := c.svc.Asked(ctx, run)
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

// comeBack goes on with a call whose client comes back with answers.
func (c *calls) comeBack(ctx context.Context, req *sdk.CallToolRequest) (sdk.Result, error) {
	state, err := c.rounds.end(ctx, req)
	if err != nil {
		return nil, err
	}
	record, err := c.svc.Get(ctx, state.Run)
	if err != nil {
		return refused(ctx, err, "")
	}
	given := sdk.InputResponseMap{}
	for _, id := range state.Questions {
		if response := req.Params.InputResponses[id]; response != nil {
			given[id] = response
		}
	}
	refusal, err := c.take(ctx, state.Run, given)
	switch {
	case err != nil:
		c.rounds.reopen(ctx, state)
		return nil, err
	case refusal != nil:
		return refusal.problem(state.Run).result(), nil
	}
	return c.follow(ctx, req, record)
}

// take has answers to what a run asks stored: first all are looked at. Those to what it doesn't ask any more are
// passed over. refusal says why the run was cancelled; nil: it wasn't.
func (c *calls) take(
	ctx context.Context, run string, given sdk.InputResponseMap,
) (refusal *unanswered, err error) {
	questions, err := c.svc.Asked(ctx, run)
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
			c.giveUp(ctx, run, refusal.reason)
			return refusal, nil
		}
	}
	for i, q := range questions {
		if given[q.ID] == nil {
			continue
		}
		err := c.svc.Answer(ctx, q.ID, answers[i])
		switch {
		case err == nil, fault.Is(err, fault.Conflict): // somebody else was faster
		case fault.Is(err, fault.Input), fault.Is(err, fault.TooLarge):
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

// leave cancels the runs that ask clients who can't come back any more.
func (c *calls) leave(ctx context.Context) {
	for _, run := range c.rounds.left() {
		c.giveUp(ctx, run, gone.reason)
	}
}
