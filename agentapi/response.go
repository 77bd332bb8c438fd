package agentapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/fault"
)

// StatusOK is the status of a success as it is written (section "Sync response shape").
const StatusOK = "ok"

// Response is an agent's answer, and what the terminal event of a stream holds. To write
// a success, set Status to StatusOK and OK to true: readers look at either.
type Response struct {
	RequestID  string            `json:"request_id,omitempty"` // as it was asked
	TaskType   string            `json:"task_type,omitempty"`  // required in a terminal event
	Status     string            `json:"status,omitempty"`
	OK         bool              `json:"ok"`      // as read: whether it is a success, in either style
	Outputs    Object            `json:"outputs"` // {} where there are none
	Artifacts  []json.RawMessage `json:"artifacts,omitempty"`
	Provenance Object            `json:"provenance,omitzero"`
	Usage      Object            `json:"usage,omitzero"`
	Warnings   []string          `json:"warnings,omitempty"`
	Reason     string            `json:"-"` // why it is no success, as the agent put it; only as read
}

// ParseResponse reads the answer of the sync endpoint to the given request. That the
// agent says that it failed is no error: OK is false then. The error is a *Violation.
func ParseResponse(raw []byte, asked Request) (Response, error) {
	f, err := readFields(raw)
	if err != nil {
		return Response{}, broken("sync-json", "the answer %s", err)
	}
	return responseOf(f, asked, syncRules)
}

// responseOf reads the members of an answer that keeps the given rules. One that says
// that it failed has to say to whom, and no more.
func responseOf(f fields, asked Request, rules []rule) (Response, error) {
	failed := indicated(f) == failure
	for _, r := range rules {
		if failed && !r.always {
			continue
		}
		if why := r.judge(f, asked); why != "" {
			return Response{}, broken(r.id, "%s", why)
		}
	}
	return readResponse(f), nil
}

// readResponse takes what is there. The members that are only recommended have no types
// in the specification; those of another type than ours are taken as well as it goes.
func readResponse(f fields) Response {
	r := Response{
		RequestID: f.text("request_id"), TaskType: f.text("task_type"), Status: f.text("status"),
		OK: indicated(f) == success, Outputs: f.object("outputs"), Artifacts: f.list("artifacts"),
		Provenance: f.object("provenance"), Usage: f.object("usage"),
	}
	if r.Outputs == nil {
		r.Outputs = f.object("data")
	}
	if !r.OK {
		r.Reason = f.reason()
	}
	for _, raw := range f.list("warnings") {
		r.Warnings = append(r.Warnings, plainText(raw))
	}
	return r
}

// reason looks for what an answer says of its failure. The specification has no member for
// that; these are the usual ones, as texts or as objects with a message.
func (f fields) reason() string {
	for _, name := range []string{"error", "message", "detail"} {
		if text := f.text(name); text != "" {
			return text
		}
		inner, err := readFields(f.object(name))
		if err == nil && inner.text("message") != "" {
			return inner.text("message")
		}
	}
	return ""
}

// plainText returns a string's text, and the JSON of everything else.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// invalid makes a fault of what was found; nil of nothing.
func invalid(found []fault.Finding) error {
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b fault.Finding) int { return strings.Compare(a.Pointer, b.Pointer) })
	return fault.New(fault.Input, "the request doesn't keep the agent HTTP contract").WithFindings(found)
}
