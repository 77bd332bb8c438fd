package agentapi

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/strictjson"
)

// call is one request and the function that reads its answer.
type call struct {
	asked  Request
	path   string
	accept string
	body   []byte
	take   func(context.Context, connection) (Response, error)
}

// connection is an answer in transfer, and the function that cuts it off by ending its
// context.
type connection struct {
	*http.Response
	end context.CancelCauseFunc
}

// Run sends one request to the sync endpoint. Without an error the answer keeps the
// contract. If its OK is false, the agent says that it failed: an outcome, not an error.
//
// A refusal by status code is a *Refusal, a fault of the kind that the code means. The
// Response then holds the refusal's body if that has the contract's shape. An answer that
// breaks the contract is a *Violation, no answer an Unavailable fault, a timeout a Deadline
// fault; the end of ctx is its own error.
func (c *Client) Run(ctx context.Context, asked Request) (Response, error) {
	take := func(ctx context.Context, answer connection) (Response, error) {
		raw, err := c.readAll(ctx, answer.Body)
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
	var err error
	if k.body, err = strictjson.Encode(k.asked); err != nil {
		return Response{}, fault.New(fault.Input, "the request can't be written as JSON")
	}
	ctx, stop := context.WithTimeoutCause(ctx, c.opts.Timeout, errTimeout)
	defer stop()
	return c.send(ctx, k)
}

// send makes the request and logs the outcome.
func (c *Client) send(ctx context.Context, k call) (response Response, err error) {
	began, status := time.Now(), 0
	defer func() {
		c.log.LogAttrs(ctx, slog.LevelDebug, "agent called", append(ids(k.asked),
			slog.Int("status", status), slog.Bool("ok", err == nil && response.OK), slog.Int64("duration_ms", time.Since(began).Milliseconds()))...)
	}()
	ctx, end := context.WithCancelCause(ctx) // closes the connection, even if more is to come
	defer end(nil)
	req, err := c.request(ctx, http.MethodPost, k.path, k.body)
	if err != nil {
		return Response{}, err
	}
	req.Header.Set("Accept", k.accept)
	answer, err := c.http.Do(req)
	if err != nil {
		return Response{}, c.unanswered(ctx, err)
	}
	defer answer.Body.Close()
	if status = answer.StatusCode; status/100 != 2 {
		return c.refusal(ctx, answer, k.asked)
	}
	return k.take(ctx, connection{answer, end})
}

// ids are the parts of a request that may be logged (section "PHI-safe logging rules").
func ids(asked Request) []slog.Attr {
	return []slog.Attr{slog.String("request_id", asked.RequestID), slog.String("task_type", asked.TaskType)}
}

func newBodyRequest(ctx context.Context, method, address string, body []byte) (*http.Request, error) {
	var from io.Reader
	if body != nil {
		from = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, from)
	if err != nil {
		return nil, fault.New(fault.Input, "no request can be made to the agent's address")
	}
	return req, nil
}

// readAll reads a bounded body.
func (c *Client) readAll(ctx context.Context, body io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(body, c.opts.Limits.Answer+1))
	switch {
	case err != nil:
		return nil, c.brokeOff(ctx, err)
	case int64(len(raw)) > c.opts.Limits.Answer:
		return nil, fault.New(fault.TooLarge, "the agent's answer is more than is taken: the limit is %d bytes", c.opts.Limits.Answer)
	}
	return raw, nil
}
