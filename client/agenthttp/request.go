package agenthttp

import (
	"fmt"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
)

// MaxIDBytes bounds each text of a request: they are names and ids, not payloads.
const MaxIDBytes = 1024

// DefaultMode is the mode of a request that names none (section "Request schema").
const DefaultMode = "DEMO"

// Request asks an agent for a task; both endpoints take the same (section "Request
// schema"). Empty members are omitted when it is written.
type Request struct {
	RequestID  string `json:"request_id"` // a trace id, not an idempotency key
	TaskType   string `json:"task_type"`
	WorkflowID string `json:"workflow_id,omitempty"`
	StageID    string `json:"stage_id,omitempty"`
	UserID     string `json:"user_id,omitempty"`
	Mode       string `json:"mode,omitempty"` // "DEMO", "LIVE"; "" is DefaultMode
	RiskTier   string `json:"risk_tier,omitempty"`
	DomainID   string `json:"domain_id,omitempty"`
	Inputs     Object `json:"inputs,omitzero"`
	Budgets    Object `json:"budgets,omitzero"`
}

// ParseRequest reads a request as a server receives it. Unknown members are ignored, and
// nulls count as missing. The error is a BadRequest fault for text that isn't a JSON object,
// else an Input fault with every violation.
func ParseRequest(raw []byte) (Request, error) {
	f, err := document.Read(raw)
	if err != nil {
		return Request{}, fault.New(fault.BadRequest, "the request %s", err).
			WithHint("send one JSON object, such as {\"request_id\": …, \"task_type\": …}")
	}
	var r Request
	var found []fault.Finding
	for name, into := range r.texts() {
		*into = f.Text(name)
		if f.Has(name) && f[name][0] != '"' {
			found = append(found, violation(name, "it is not a string"))
		}
	}
	for name, into := range map[string]*Object{"inputs": &r.Inputs, "budgets": &r.Budgets} {
		if *into = Object(f.Object(name)); f.Has(name) && *into == nil {
			found = append(found, violation(name, "it is not an object"))
		}
	}
	return r, invalid(append(found, r.missing(found)...))
}

// Check checks a request against the contract. The error is an Input fault.
func (r *Request) Check() error {
	found := r.missing(nil)
	for name, object := range map[string]Object{"inputs": r.Inputs, "budgets": r.Budgets} {
		if object.IsZero() {
			continue
		}
		if _, err := document.Read(object); err != nil {
			found = append(found, violation(name, "it "+err.Error()))
		}
	}
	return invalid(found)
}

// texts lists the string members.
func (r *Request) texts() map[string]*string {
	return map[string]*string{
		"request_id": &r.RequestID, "task_type": &r.TaskType, "workflow_id": &r.WorkflowID, "stage_id": &r.StageID,
		"user_id": &r.UserID, "mode": &r.Mode, "risk_tier": &r.RiskTier, "domain_id": &r.DomainID,
	}
}

// missing finds the required members that are empty, and the members that are too long. It
// leaves out members that have a finding already.
func (r *Request) missing(already []fault.Finding) []fault.Finding {
	known := map[string]bool{}
	for _, f := range already {
		known[f.Pointer] = true
	}
	var found []fault.Finding
	for name, text := range r.texts() {
		required := name == "request_id" || name == "task_type"
		switch {
		case known["/"+name]:
		case required && *text == "":
			found = append(found, violation(name, "it is required and must not be empty"))
		case len(*text) > MaxIDBytes:
			found = append(found, violation(name, fmt.Sprintf("it has more than %d bytes", MaxIDBytes)))
		}
	}
	return found
}

func violation(name, message string) fault.Finding {
	return fault.Finding{Pointer: "/" + name, Message: message}
}
