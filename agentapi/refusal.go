package agentapi

import (
	"context"
	"io"
	"net/http"

	"github.com/agent-on-demand/aod/fault"
)

// Refusal is an answer with an error status code.
type Refusal struct {
	Status int
	Fault  *fault.Error // of the kind for the status
}

func (r *Refusal) Error() string { return r.Fault.Error() }

// Unwrap returns the fault.
func (r *Refusal) Unwrap() error { return r.Fault }

// refusal turns an error response into an error. It doesn't show the body, which may repeat
// the inputs.
func (c *Client) refusal(ctx context.Context, answer *http.Response, asked Request) (Response, error) {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err != nil && ctx.Err() != nil {
		return Response{}, c.ended(ctx)
	}
	response, _ := refused(raw, asked)
	status := answer.StatusCode
	f := fault.New(kindOf(status), "the agent at %s answers %d", c.base.Host, status).WithHint("%s", hintOf(status))
	return response, &Refusal{status, f}
}

// refused reads a refusal of the contract's shape, alone or in a member "detail", and says
// what it lacks of that shape.
func refused(raw []byte, asked Request) (response Response, why string) {
	f, err := readFields(raw)
	if err != nil {
		return response, "the body " + err.Error()
	}
	if inner := f.object("detail"); inner != nil && !f.has("request_id") {
		if f, err = readFields(inner); err != nil {
			return response, "the body's detail " + err.Error()
		}
	}
	if why := echoesID(f, asked); why != "" {
		return response, why
	}
	switch {
	case !f.isBool("ok", false):
		return response, "ok is not false"
	case f.object("outputs") == nil:
		return readResponse(f), "outputs is missing, null or no object"
	case !f.has("warnings"):
		return readResponse(f), "warnings is missing or null"
	}
	return readResponse(f), ""
}

// kindOf maps a status code to the kind of fault for the caller.
func kindOf(status int) fault.Kind {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return fault.Input
	case http.StatusUnauthorized:
		return fault.Unauthorized
	case http.StatusForbidden:
		return fault.Forbidden
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusConflict:
		return fault.Conflict
	case http.StatusRequestEntityTooLarge:
		return fault.TooLarge
	case http.StatusTooManyRequests:
		return fault.Busy
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return fault.Deadline
	}
	if status >= http.StatusInternalServerError && status != http.StatusNotImplemented {
		return fault.Unavailable
	}
	return fault.Unsupported
}

func hintOf(status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "is the agent's token the right one?"
	case status/100 == 3:
		return "it sends us to another place, which is not followed: name that place itself if you trust it"
	case status == http.StatusNotFound:
		return "do its endpoints lie at agents/run/… below this address, and does it know the task type?"
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return "ask again later"
	case status/100 == 4:
		return "does it know the task type, and are the inputs those that it wants?"
	}
	return "the agent's own log says more"
}
