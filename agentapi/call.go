package agentapi

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/agentapi/internal/document"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/strictjson"
)

// call is one request and the function that reads its answer.
type call struct {
	asked  Request
	path   string
	accept string
	take   func(*Answer) (Response, error)
}

// Run sends one request to the sync endpoint. Without an error the answer keeps the
// contract. If its OK is false, the agent says that it failed: an outcome, not an error.
//
// A refusal by status code is a *Refusal, a fault of the kind that the code means. The
// Response then holds the refusal's body if that has the contract's shape, else what it says
// of its reason. An answer that
// breaks the contract is a *Violation, no answer an Unavailable fault, a timeout a Deadline
// fault; the end of ctx is its own error.
func (c *Client) Run(ctx context.Context, asked Request) (Response, error) {
	take := func(answer *Answer) (Response, error) {
		raw, err := answer.ReadAll()
		if err != nil {
			return Response{}, err
		}
		return ParseResponse(raw, asked)
	}
	return c.call(ctx, call{asked: asked, path: SyncPath, accept: "application/json", take: take})
}

// call makes the call and reads its answer.
func (c *Client) call(ctx context.Context, k call) (Response, error) {
	if err := k.asked.Check(); err != nil {
		return Response{}, err
	}
	body, err := strictjson.Encode(k.asked)
	if err != nil {
		return Response{}, fault.New(fault.Input, "the request can't be written as JSON")
	}
	return c.send(ctx, k, body)
}

// send makes the request and logs the outcome.
func (c *Client) send(ctx context.Context, k call, body []byte) (response Response, err error) {
	began, status := time.Now(), 0
	defer func() {
		c.log.LogAttrs(ctx, slog.LevelDebug, "agent called", append(ids(k.asked),
			slog.Int("status", status), slog.Bool("ok", err == nil && response.OK), slog.Int64("duration_ms", time.Since(began).Milliseconds()))...)
	}()
	answer, err := c.Do(ctx, Exchange{Method: http.MethodPost, Path: k.path, Accept: k.accept, Body: body})
	if err != nil {
		return Response{}, err
	}
	defer answer.Close()
	if status = answer.StatusCode; status/100 != 2 {
		return c.refusal(answer, k.asked)
	}
	return k.take(answer)
}

// ids are the parts of a request that may be logged (section "PHI-safe logging rules").
func ids(asked Request) []slog.Attr {
	return []slog.Attr{slog.String("request_id", asked.RequestID), slog.String("task_type", asked.TaskType)}
}

// ids are what an answer has to echo of a request.
func (r *Request) ids() document.Asked {
	return document.Asked{RequestID: r.RequestID, TaskType: r.TaskType}
}
