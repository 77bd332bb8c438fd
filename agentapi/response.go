package agentapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/fault"
)

// StatusOK is the status of a success as it is written (section "Sync response shape").
const StatusOK = "ok"

// Response is an agent's answer, and the content of the terminal event of a stream. To
// write a success, set Status to StatusOK and OK to true: readers look at either.
type Response struct {
	RequestID  string            `json:"request_id,omitempty"` // as in the request
	TaskType   string            `json:"task_type,omitempty"`  // required in a terminal event
	Status     string            `json:"status,omitempty"`
	OK         bool              `json:"ok"`      // when read: whether it is a success, in either style
	Outputs    Object            `json:"outputs"` // {} if there are none
	Artifacts  []json.RawMessage `json:"artifacts,omitempty"`
	Provenance Object            `json:"provenance,omitzero"`
	Usage      Object            `json:"usage,omitzero"`
	Warnings   []string          `json:"warnings,omitempty"`
	Reason     string            `json:"-"` // why it is no success, in the agent's words; set only when read
}

// ParseResponse reads the answer of the sync endpoint to the given request. An agent's
// report of its own failure is no error: OK is false then. The error is a *Violation.
func ParseResponse(raw []byte, asked Request) (Response, error) {
	f, err := readFields(raw)
	if err != nil {
		return Response{}, broken("sync-json", "the answer %s", err)
	}
	return responseOf(f, asked, syncRules)
}

// responseOf reads the members of an answer that keeps the given rules. An answer that
// reports a failure has to keep fewer rules.
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

// readResponse reads the members that are present. The specification gives no types for the
// merely recommended members; those of an unexpected type are converted if possible.
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

// reason finds an answer's explanation of its failure. The specification has no member for
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

// plainText returns a string's text, and the JSON of any other value.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// invalid makes a fault of findings, nil if there are none.
func invalid(found []fault.Finding) error {
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b fault.Finding) int { return strings.Compare(a.Pointer, b.Pointer) })
	return fault.New(fault.Input, "the request doesn't keep the agent HTTP contract").WithFindings(found)
}
