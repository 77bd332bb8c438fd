package agentapi

import (
	"slices"

	"github.com/agent-on-demand/aod/fault"
)

// The sections of the specification that rules come from.
const (
	sectionEndpoints = "Overview + endpoints"
	sectionRequest   = "Request schema"
	sectionSync      = "Sync response shape"
	sectionSSE       = "SSE format"
	sectionInvariant = "Stream invariant: single terminal event"
	sectionByType    = "Required fields by event type"
	sectionPHI       = "PHI-safe logging rules"
)

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
	return &Violation{Rule: rule, Fault: f.WithHint("it is the rule %s of aod check-agent, which tells all at once", rule)}
}

// rule is one rule for an answer. judge returns why the answer breaks it, "" if it doesn't.
type rule struct {
	id, title, section string
	always             bool // also for an answer that reports a failure
	judge              func(f fields, asked Request) string
}

// syncRules are the rules for the body of a sync answer.
var syncRules = []rule{
	{"sync-request-id", "the answer echoes request_id", sectionSync, true, echoesID},
	{"sync-success", "the answer says that it is a success, by status or ok", sectionSync, true, func(f fields, _ Request) string {
		return indicates(f, "it has neither a status nor a boolean ok")
	}},
	{"sync-outputs", "outputs is an object, and there", sectionSync, false, func(f fields, _ Request) string {
		return hasOutputs(f, "outputs")
	}},
}

// terminalRules are the rules for the data of a terminal event.
var terminalRules = []rule{
	{"stream-terminal-request-id", "the terminal event echoes request_id", sectionByType, true, echoesID},
	{"stream-terminal-task-type", "the terminal event has the task_type", sectionByType, false, echoesTask},
	{"stream-terminal-status", "the terminal event has a status", sectionByType, false, func(f fields, _ Request) string {
		if f.text("status") == "" {
			return "the terminal event's status is missing, empty or no string"
		}
		return ""
	}},
	{"stream-terminal-success", "the terminal event says that it is a success, by status, ok or success", sectionByType, true, func(f fields, _ Request) string {
		return indicates(f, "the terminal event has no status, ok or success that says how it went")
	}},
	{"stream-terminal-outputs", "the terminal event has outputs or data, an object", sectionByType, false, func(f fields, _ Request) string {
		return hasOutputs(f, "outputs", "data")
	}},
}

func echoesID(f fields, asked Request) string {
	switch id := f.text("request_id"); {
	case id == "":
		return "request_id is missing, empty or no string"
	case id != asked.RequestID:
		return "request_id is another than that of the request"
	}
	return ""
}

func echoesTask(f fields, asked Request) string {
	switch task := f.text("task_type"); {
	case task == "":
		return "task_type is missing, empty or no string"
	case task != asked.TaskType:
		return "task_type is another than that of the request"
	}
	return ""
}

func hasOutputs(f fields, names ...string) string {
	for _, name := range names {
		if f.object(name) != nil {
			return ""
		}
	}
	if slices.ContainsFunc(names, f.has) {
		return "outputs is not an object"
	}
	return "outputs is missing or null"
}

// indication is what an answer says of its success.
type indication uint8

const (
	silence indication = iota
	contradiction
	failure
	success
)

// indicated reads both styles of success. A boolean overrides an unusual status, such as
// "completed". A boolean that contradicts the status makes the answer neither a success nor
// a failure.
func indicated(f fields) indication {
	status := f.text("status")
	claimed := status == "ok" || status == "success"
	yes := f.isBool("ok", true) || f.isBool("success", true)
	no := f.isBool("ok", false) || f.isBool("success", false)
	switch {
	case no && (claimed || yes):
		return contradiction
	case claimed || yes:
		return success
	case no || status != "":
		return failure
	}
	return silence
}

// indicates requires an answer to say whether it succeeded or failed.
func indicates(f fields, missing string) string {
	switch indicated(f) {
	case silence:
		return missing
	case contradiction:
		return "status, ok and success contradict one another"
	}
	return ""
}
