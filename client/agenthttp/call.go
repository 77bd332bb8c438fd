package agenthttp

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

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
	return c.call(ctx, asked, Exchange{Path: SyncPath, Accept: "application/json"}, take)
}

// Stream requests events and calls each with every one as it comes, except the terminal
// one: its content is the Response, as of Run. The stream must have exactly one terminal
// event, and it must be the last; else the error is a *Violation that says what was
// missing. An event of type progress is never the terminal one, whatever its step is
// called. Errors are those of Run.
func (c *Client) Stream(ctx context.Context, asked Request, each func(Event)) (Response, error) {
	take := func(answer *Answer) (Response, error) {
		if httpwire.MediaType(answer.Header) != httpwire.TypeEvents {
			return Response{}, broken(document.StreamMedia, "the Content-Type of its stream is not %s",
				httpwire.TypeEvents)
		}
		f := follower{answer: answer, asked: asked, each: each}
		return f.follow()
	}
	return c.call(ctx, asked, Exchange{Path: StreamPath, Accept: httpwire.TypeEvents}, take)
}

// call makes the call, reads its answer by take, and logs the outcome.
func (c *Client) call(
	ctx context.Context, asked Request, x Exchange, take func(*Answer) (Response, error),
) (response Response, err error) {
	if err := asked.Check(); err != nil {
		return Response{}, err
	}
	x.Method = http.MethodPost
	if x.Body, err = strictjson.Encode(asked); err != nil {
		return Response{}, fault.New(fault.Input, "the request can't be written as JSON")
	}
	began, status := time.Now(), 0
	defer func() {
		c.opts.Log.LogAttrs(ctx, slog.LevelDebug, "agent called", append(ids(asked),
			slog.Int("status", status), slog.Bool("ok", err == nil && response.OK),
			slog.Int64("duration_ms", time.Since(began).Milliseconds()))...)
	}()
	answer, err := c.Do(ctx, x)
	if err != nil {
		return Response{}, err
	}
	defer answer.Close()
	if status = answer.StatusCode; status/100 != 2 {
		return c.refusal(answer, asked)
	}
	return take(answer)
}

// refusal turns an error response into an error. It doesn't show the body, which may repeat
// the inputs.
func (c *Client) refusal(answer *Answer, asked Request) (Response, error) {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if over := answer.over(); err != nil && over != nil {
		return Response{}, over
	}
	response := refused(raw, asked)
	status := answer.StatusCode
	f := fault.New(statuses.Of(status), "the agent at %s answers %d", c.far.Base.Host, status).
		WithHint("%s", hintOf(status))
	return response, &Refusal{status, f}
}

// ids are the parts of a request that may be logged (section "PHI-safe logging rules").
func ids(asked Request) []slog.Attr {
	return []slog.Attr{slog.String("request_id", asked.RequestID), slog.String("task_type", asked.TaskType)}
}

// ids are what an answer has to echo of a request.
func (r *Request) ids() document.Asked {
	return document.Asked{RequestID: r.RequestID, TaskType: r.TaskType}
}
