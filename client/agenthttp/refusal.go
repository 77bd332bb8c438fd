package agenthttp

import (
	"io"
	"net/http"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
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
func (c *Client) refusal(answer *Answer, asked Request) (Response, error) {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if over := answer.over(); err != nil && over != nil {
		return Response{}, over
	}
	response := refused(raw, asked)
	status := answer.StatusCode
	f := fault.New(kindOf(status), "the agent at %s answers %d", c.base.Host, status).WithHint("%s", hintOf(status))
	return response, &Refusal{status, f}
}

// refused reads the body of a refusal. One that isn't of the contract's shape is read for its
// reason alone, and not even for that if it answers another request.
func refused(raw []byte, asked Request) Response {
	f, why := document.ReadRefusal(raw)
	switch {
	case why != "" || f.Has("request_id") && document.EchoesID(f, asked.ids()) != "":
		return Response{}
	case f.Has("request_id") && document.Indicated(f) == document.Failure:
		return readResponse(f)
	}
	return Response{Code: codeOf(f), Reason: reasonOf(f)}
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

// Violation is an answer that breaks the contract, with the rule's id in a Report. It is an
// Unsupported fault: a retry would bring the same answer.
type Violation struct {
	Rule  string
	Fault *fault.Error
}

func (v *Violation) Error() string { return v.Fault.Error() }

// Unwrap returns the fault.
func (v *Violation) Unwrap() error { return v.Fault }

func broken(rule, format string, args ...any) *Violation {
	f := fault.New(fault.Unsupported, "the agent breaks the agent HTTP contract: "+format, args...)
	return &Violation{Rule: rule, Fault: f.WithHint("it is the rule %s of aod check-agent, which tells all at once",
		rule)}
}
