package agenthttp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// StatusOK is the status of a success as it is written (section "Sync response shape").
const StatusOK = "ok"

// Response is an agent's answer, and the content of the terminal event of a stream. To
// write a success, set Status to StatusOK and OK to true: readers look at either.
type Response struct {
	Type      EventType `json:"type,omitempty"`       // of a terminal event, whose name says it as well
	RequestID string    `json:"request_id,omitempty"` // as in the request
	TaskType  string    `json:"task_type,omitempty"`  // required in a terminal event
	Status    string    `json:"status,omitempty"`
	OK        bool      `json:"ok"`                  // when read: whether it is a success, in either style
	Outputs   Object    `json:"outputs"`             // {} if there are none
	Artifacts []string  `json:"artifacts,omitempty"` // URLs, ids or paths
	// ArtifactDetails say more of the artifacts. Artifacts of an answer that aren't texts are
	// read as details.
	ArtifactDetails []json.RawMessage `json:"artifact_details,omitempty"`
	Provenance      Object            `json:"provenance,omitzero"`
	Usage           Object            `json:"usage,omitzero"`
	Warnings        Texts             `json:"warnings"`
	// Code and Reason say why it isn't a success, in the agent's own words: text of a stranger,
	// which may repeat the inputs. They are set only when read.
	Code   string `json:"-"`
	Reason string `json:"-"`
}

// HasOddStatus reports whether the status doesn't say by itself how the task went, such as
// "degraded". Whether it is a success then depends on ok and success alone.
func (r *Response) HasOddStatus() bool { return document.IsOddStatus(r.Status) }

// Texts is a list of texts that is always written: as [] if there are none.
type Texts []string

// MarshalJSON writes the list, never null.
func (t Texts) MarshalJSON() ([]byte, error) {
	if len(t) == 0 {
		return []byte("[]"), nil
	}
	return strictjson.Encode([]string(t))
}

// ParseResponse reads the answer of the sync endpoint to the given request. An agent's
// report of its own failure isn't an error: OK is false then. The error is a *Violation.
func ParseResponse(raw []byte, asked Request) (Response, error) {
	f, err := document.Read(raw)
	if err != nil {
		return Response{}, broken(document.SyncJSON, "the answer %s", err)
	}
	return responseOf(f, asked, document.Sync)
}

// responseOf reads the members of an answer that keeps the given rules. An answer that
// reports a failure has to keep fewer rules.
func responseOf(f document.Fields, asked Request, rules []document.Rule) (Response, error) {
	failed := document.Indicated(f) == document.Failure
	for _, r := range rules {
		if failed && !r.Always || r.MayLack && r.LackedBy(f) {
			continue
		}
		if why := r.Judge(f, asked.ids()); why != "" {
			return Response{}, broken(r.ID, "%s", why)
		}
	}
	return readResponse(f), nil
}

// readResponse reads the members that are present. The specification gives no types for the
// merely recommended members; those of an unexpected type are converted if possible.
func readResponse(f document.Fields) Response {
	r := Response{
		Type: EventType(f.Text("type")), RequestID: f.Text("request_id"), TaskType: f.Text("task_type"),
		Status: f.Text("status"),
		OK:     document.Indicated(f) == document.Success, Outputs: Object(f.Object("outputs")),
		Provenance: Object(f.Object("provenance")), Usage: Object(f.Object("usage")),
	}
	if r.Outputs == nil {
		r.Outputs = Object(f.Object("data"))
	}
	if !r.OK {
		r.Code, r.Reason = codeOf(f), reasonOf(f)
	}
	for _, raw := range f.List("warnings") {
		r.Warnings = append(r.Warnings, plainText(raw))
	}
	r.readArtifacts(f)
	return r
}

func (r *Response) readArtifacts(f document.Fields) {
	for _, raw := range f.List("artifacts") {
		if raw[0] == '"' {
			r.Artifacts = append(r.Artifacts, plainText(raw))
			continue
		}
		r.ArtifactDetails = append(r.ArtifactDetails, raw)
	}
	r.ArtifactDetails = append(r.ArtifactDetails, f.List("artifact_details")...)
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
