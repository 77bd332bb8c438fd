package agenthttp

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/peer"
)

// Refusal is an answer with an error status code.
type Refusal struct {
	Status int
	Fault  *fault.Error // of the kind for the status
}

func (r *Refusal) Error() string { return r.Fault.Error() }

// Unwrap returns the fault.
func (r *Refusal) Unwrap() error { return r.Fault }

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

// statuses are the kinds of fault for the caller.
var statuses = peer.Kinds{
	Own: map[int]fault.Kind{
		http.StatusBadRequest: fault.Input, http.StatusUnprocessableEntity: fault.Input,
		http.StatusConflict: fault.Conflict, http.StatusRequestEntityTooLarge: fault.TooLarge,
		http.StatusRequestTimeout: fault.Deadline, http.StatusGatewayTimeout: fault.Deadline,
	},
	Failed: fault.Unavailable,
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

func broken(rule, format string, args ...any) *Violation {
	f := fault.New(fault.Unsupported, "the agent breaks the agent HTTP contract: "+format, args...)
	return &Violation{Rule: rule, Fault: f.WithHint("it is the rule %s of aod check-agent, which tells all at once",
		rule)}
}

// maxReasons bounds how many errors of a list are told.
const maxReasons = 10

// errorMembers are those in which agents explain a failure: as a text, as an object with a code
// and a message, or as a list of such. "error" is the contract's own.
var errorMembers = []string{"error", "message", "detail"}

// codeOf finds an agent's own code of a failure, such as VALIDATION_ERROR.
func codeOf(f document.Fields) string {
	for _, name := range errorMembers {
		inner, err := document.Read(f.Object(name))
		if err == nil && inner.Text("code") != "" {
			return inner.Text("code")
		}
	}
	return cmp.Or(f.Text("code"), f.Text("error_code"))
}

// reasonOf finds an agent's explanation of a failure.
func reasonOf(f document.Fields) string {
	for _, name := range errorMembers {
		if text := cmp.Or(f.Text(name), messageOf(f.Object(name)), listed(f, name)); text != "" {
			return text
		}
	}
	return ""
}

// messageOf reads an error that is an object. Validators call its text msg.
func messageOf(raw []byte) string {
	f, err := document.Read(raw)
	if err != nil {
		return ""
	}
	return cmp.Or(f.Text("message"), f.Text("msg"))
}

// listed reads a list of errors, as validators of requests give them: each with a msg and the
// place that it is about. The value there, which some repeat, is left out.
func listed(f document.Fields, name string) string {
	var texts []string
	for _, raw := range f.List(name) {
		text := messageOf(raw)
		if text == "" || len(texts) == maxReasons {
			continue
		}
		if at := placeOf(raw); at != "" {
			text = at + ": " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// placeOf is the place of an error, as names with dots.
func placeOf(raw []byte) string {
	f, err := document.Read(raw)
	if err != nil {
		return ""
	}
	var parts []string
	for _, part := range f.List("loc") {
		parts = append(parts, plainText(part))
	}
	return strings.Join(parts, ".")
}
