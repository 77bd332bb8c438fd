package document

import "slices"

// The sections of the specification that rules come from.
const (
	SectionEndpoints = "Overview + endpoints"
	SectionRequest   = "Request schema"
	SectionSync      = "Sync response shape"
	SectionSSE       = "SSE format"
	SectionInvariant = "Stream invariant: single terminal event"
	SectionByType    = "Required fields by event type"
	SectionPHI       = "PHI-safe logging rules"
)

// The ids of the rules that the client and the checker share, beside those of Sync and Terminal.
const (
	SyncJSON       = "sync-json"
	StreamMedia    = "stream-content-type"
	StreamJSON     = "stream-json"
	StreamTerminal = "stream-terminal"
	StreamSingle   = "stream-single-terminal"
	StreamLast     = "stream-terminal-last"
)

// Asked are the ids of the request that a document answers.
type Asked struct{ RequestID, TaskType string }

// Rule is one rule for an answer. Judge returns why the answer breaks it, "" if it doesn't.
type Rule struct {
	ID, Title, Section string
	Always             bool // also for an answer that reports a failure
	Judge              func(f Fields, asked Asked) string
}

// Sync are the rules for the body of a sync answer.
var Sync = []Rule{
	{"sync-request-id", "the answer echoes request_id", SectionSync, true, EchoesID},
	{"sync-success", "the answer says that it is a success, by status or ok", SectionSync, true, func(f Fields, _ Asked) string {
		return indicates(f, "it has neither a status nor a boolean ok")
	}},
	{"sync-outputs", "outputs is an object, and there", SectionSync, false, func(f Fields, _ Asked) string {
		return hasOutputs(f, "outputs")
	}},
}

// Terminal are the rules for the data of a terminal event.
var Terminal = []Rule{
	{"stream-terminal-request-id", "the terminal event echoes request_id", SectionByType, true, EchoesID},
	{"stream-terminal-task-type", "the terminal event has the task_type", SectionByType, false, echoesTask},
	{"stream-terminal-status", "the terminal event has a status", SectionByType, false, func(f Fields, _ Asked) string {
		if f.Text("status") == "" {
			return "the terminal event's status is missing, empty or no string"
		}
		return ""
	}},
	{"stream-terminal-success", "the terminal event says that it is a success, by status, ok or success", SectionByType, true, func(f Fields, _ Asked) string {
		return indicates(f, "the terminal event has no status, ok or success that says how it went")
	}},
	{"stream-terminal-outputs", "the terminal event has outputs or data, an object", SectionByType, false, func(f Fields, _ Asked) string {
		return hasOutputs(f, "outputs", "data")
	}},
}

// EchoesID says why a document doesn't echo the request's id, "" if it does.
func EchoesID(f Fields, asked Asked) string {
	switch id := f.Text("request_id"); {
	case id == "":
		return "request_id is missing, empty or no string"
	case id != asked.RequestID:
		return "request_id is another than that of the request"
	}
	return ""
}

func echoesTask(f Fields, asked Asked) string {
	switch task := f.Text("task_type"); {
	case task == "":
		return "task_type is missing, empty or no string"
	case task != asked.TaskType:
		return "task_type is another than that of the request"
	}
	return ""
}

func hasOutputs(f Fields, names ...string) string {
	for _, name := range names {
		if f.Object(name) != nil {
			return ""
		}
	}
	if slices.ContainsFunc(names, f.Has) {
		return "outputs is not an object"
	}
	return "outputs is missing or null"
}
