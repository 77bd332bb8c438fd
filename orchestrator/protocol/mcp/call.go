package mcp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// ClientKey is the metadata of a run that says which client asked for it.
const ClientKey = "mcp_client"

// calls are the calls of tools.
type calls struct {
	svc       Service
	catalogue *catalogue
	arguments arguments
	results   results
	people    people
	rounds    *rounds
	spans     bool // each call has a span
	logger    *slog.Logger
}

// callTool makes a run of a call, and answers with its result, or with a task.
func (c *calls) callTool(ctx context.Context, req *sdk.CallToolRequest) (result sdk.Result, err error) {
	t := c.catalogue.find(req.Params.Name)
	if t == nil {
		return nil, invalid("there is no tool %s", fault.Quote(req.Params.Name))
	}
	release, err := bytegate.Hold(ctx, int64(len(req.Params.Arguments))) // the call may outlive its HTTP request
	if err != nil {
		return refused(ctx, err, "")
	}
	defer release()
	traceParent, end := c.traceCall(ctx, t, req)
	defer func() { end(result, err) }()
	if req.ProtocolVersion() >= Stateless && (req.Params.RequestState != "" || req.Params.InputResponses != nil) {
		return c.comeBack(ctx, req)
	}
	record, err := c.start(ctx, t, req, traceParent)
	if err != nil {
		return refused(ctx, err, "")
	}
	return c.follow(ctx, req, record)
}

// start has the run of a call made.
func (c *calls) start(ctx context.Context, t *tool, req *sdk.CallToolRequest, traceParent string) (api.Record, error) {
	input, files, err := c.arguments.take(ctx, t.input, req.Params.Arguments)
	defer files.close()
	if err != nil {
		return api.Record{}, err
	}
	record, err := c.svc.Submit(ctx, Submission{
		Unit: t.unit, Input: input, Files: files.files,
		Metadata:    map[string]string{ClientKey: clientOf(req)},
		TraceParent: traceParent,
	})
	if err == nil {
		c.logger.InfoContext(ctx, "tool called", "run", record.ID, "unit", t.unit)
	}
	return record, err
}

// clientOf is the name of the client, as far as it can be kept.
func clientOf(req *sdk.CallToolRequest) string {
	info := req.ClientInfo()
	if info == nil {
		return "unknown"
	}
	name := fault.OneLine(fault.Clip(info.Name, api.MaxMetadataValue/2))
	if version := fault.OneLine(fault.Clip(info.Version, api.MaxMetadataValue/4)); version != "" {
		name += " " + version
	}
	if !api.IsMetadataValue(name) {
		return "unknown"
	}
	return name
}

// follow waits for a run. A client that goes away cancels it; one that knows tasks gets a task
// in its place after a while.
func (c *calls) follow(ctx context.Context, req *sdk.CallToolRequest, record api.Record) (sdk.Result, error) {
	if record.Outcome != "" {
		return c.results.of(ctx, record), nil
	}
	ctx, stop := httpwire.Attached(ctx)
	defer stop()
	wait, cancel := ctx, context.CancelFunc(func() {})
	tasks := knowsTasks(req)
	if tasks {
		wait, cancel = context.WithTimeout(ctx, taskAfter)
	}
	defer cancel()
	id := record.ID
	stopTelling := tellProgress(wait, c.svc, req, id)
	record, refusal, err := c.await(wait, req, id)
	stopTelling()
	switch {
	case err == nil && record.Outcome == api.WasCancelled && refusal != nil:
		return refusal.problem(id).result(), nil
	case err == nil && record.Outcome != "":
		return c.results.of(ctx, record), nil
	case errors.Is(context.Cause(ctx), httpwire.ErrServerEnds):
		return refused(ctx, fault.New(fault.Unavailable, "the server ends before the run does").
			WithHint("the run goes on"), id)
	case ctx.Err() != nil:
		c.people.giveUp(ctx, id, "its MCP client gave up")
		return nil, &jsonrpc.Error{Code: codeCancelled, Message: "the request was cancelled"}
	case err != nil && (!tasks || wait.Err() == nil):
		return refused(ctx, err, id)
	case err != nil:
		return nil, err
	case record.Question != nil:
		return c.asked(ctx, req, record)
	}
	return taskOf(record, "task"), nil
}

// await waits for the end of a run, or until its client has to be asked something in the answer to its call. A client
// that can be asked before that is: refusal says why the run was cancelled then.
func (c *calls) await(
	ctx context.Context, req *sdk.CallToolRequest, id string,
) (record api.Record, refusal *unanswered, err error) {
	if req.ProtocolVersion() >= Stateless || !elicits(req.ClientCapabilities()) {
		record, err = c.svc.AwaitAsked(ctx, id)
		return record, nil, err
	}
	stop := c.people.converse(ctx, req, id)
	record, err = c.svc.Await(ctx, id)
	return record, stop(), err
}

// asked answers a call whose run asks something.
func (c *calls) asked(ctx context.Context, req *sdk.CallToolRequest, record api.Record) (sdk.Result, error) {
	requests, refusal, err := c.people.inputRequests(ctx, record.ID, req.ClientCapabilities())
	switch {
	case err != nil:
		return refused(ctx, err, record.ID)
	case hearingOf(ctx).Err() != nil:
		refusal = gone
	}
	switch {
	case refusal != nil:
		c.people.giveUp(ctx, record.ID, refusal.reason)
		return refusal.problem(record.ID).result(), nil
	case knowsTasks(req):
		return taskOf(record, "task"), nil // which says what it asks
	case len(requests) == 0: // somebody has answered it, or others have to
		stopTelling := tellProgress(ctx, c.svc, req, record.ID)
		c.people.awaitAsked(ctx, record.ID)
		stopTelling()
		return c.follow(ctx, req, record)
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

// comeBack goes on with a call whose client comes back with answers.
func (c *calls) comeBack(ctx context.Context, req *sdk.CallToolRequest) (sdk.Result, error) {
	state, err := c.rounds.end(ctx, req)
	if err != nil {
		return nil, err
	}
	record, err := c.svc.Get(ctx, state.Run)
	if err != nil {
		c.rounds.reopen(ctx, state)
		return refused(ctx, err, "")
	}
	given := sdk.InputResponseMap{}
	for _, id := range state.Questions {
		if response := req.Params.InputResponses[id]; response != nil {
			given[id] = response
		}
	}
	refusal, err := c.people.take(ctx, state.Run, given)
	switch {
	case err != nil:
		c.rounds.reopen(ctx, state)
		return nil, err
	case refusal != nil:
		return refusal.problem(state.Run).result(), nil
	}
	return c.follow(ctx, req, record)
}

// leave cancels the runs that ask clients who can't come back any more.
func (c *calls) leave(ctx context.Context) {
	for _, run := range c.rounds.left() {
		c.people.giveUp(ctx, run, gone.reason)
	}
}

// codeCancelled is the code of a request that its client gave up; it hardly ever reads it.
const codeCancelled = -32800

func invalid(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fault.New(fault.Input, format, args...).Msg}
}

// problem is what a model reads of a call that gave no result: enough to mend it.
type problem struct {
	Kind     string          `json:"kind"`
	Rule     string          `json:"rule,omitempty"`
	Type     string          `json:"type,omitempty"`
	Message  string          `json:"message"`
	Hint     string          `json:"hint,omitempty"`
	Findings []fault.Finding `json:"findings,omitempty"`
	Run      string          `json:"run,omitempty"`
}

func (p problem) result() *sdk.CallToolResult {
	raw, _ := httpwire.Encode(map[string]problem{"error": p}) // texts can't fail
	result := &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: string(raw)}}}
	setRun(result, p.Run)
	return result
}

// refused makes a result of a fault, which a model may mend. Other errors are the server's own.
func refused(ctx context.Context, err error, run string) (sdk.Result, error) {
	var known *fault.Error
	if !errors.As(err, &known) || fault.Is(err, fault.Internal) || ctx.Err() != nil &&
		!fault.Is(err, fault.Unavailable) {
		return nil, err
	}
	public := fault.Public(err)
	p := problem{
		Kind: fault.KindOf(err).String(), Message: public.Msg, Hint: public.Hint, Findings: public.Findings,
		Run: run,
	}
	var refusal *handoff.Refusal
	if errors.As(err, &refusal) {
		p.Rule = string(refusal.Rule)
	}
	return p.result(), nil
}

// problemOf is why a run gave no result.
func problemOf(record api.Record) problem {
	p := problem{Kind: string(record.Outcome), Message: "the run gave no result", Run: record.ID}
	if e := record.Error; e != nil {
		p.Kind, p.Type, p.Message = cmp.Or(e.Kind, p.Kind), e.Type, e.Message
		p.Hint, p.Findings = e.Hint, e.Findings
	}
	return p
}
