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
	Members            []string // that it judges
	Always             bool     // also for an answer that reports a failure
	MayLack            bool     // the client reads an answer that lacks the members
	Judge              func(f Fields, asked Asked) string
}

// Sync are the rules for the body of a sync answer.
var Sync = []Rule{
	{
		ID: "sync-request-id", Title: "the answer echoes request_id", Section: SectionSync,
		Members: []string{"request_id"}, Always: true, Judge: EchoesID,
	},
	{
		ID: "sync-success", Title: "the answer says that it is a success, by status or ok", Section: SectionSync,
		Members: successMembers, Always: true, Judge: indicates("it has neither a status nor a boolean ok"),
	},
	{
		ID: "sync-outputs", Title: "outputs is an object, and there", Section: SectionSync,
		Members: []string{"outputs"}, Judge: hasOutputs("outputs"),
	},
}

// Terminal are the rules for the data of a terminal event.
var Terminal = []Rule{
	{
		ID: "stream-terminal-request-id", Title: "the terminal event echoes request_id", Section: SectionByType,
		Members: []string{"request_id"}, Always: true, Judge: EchoesID,
	},
	{
		ID: "stream-terminal-task-type", Title: "the terminal event has the task_type", Section: SectionByType,
		Members: []string{"task_type"}, MayLack: true, Judge: echoesTask,
	},
	{
		ID: "stream-terminal-status", Title: "the terminal event has a status", Section: SectionByType,
		Members: []string{"status"}, Judge: hasStatus,
	},
	{
		ID: "stream-terminal-success", Title: "the terminal event says that it is a success, by status, ok or success",
		Section: SectionByType,
		Members: successMembers, Always: true,
		Judge: indicates("the terminal event has no status, ok or success that says how it went"),
	},
	{
		ID: "stream-terminal-outputs", Title: "the terminal event has outputs or data, an object",
		Section: SectionByType,
		Members: []string{"outputs", "data"}, Judge: hasOutputs("outputs", "data"),
	},
}

// successMembers are those that say whether a task succeeded.
var successMembers = []string{"status", "ok", "success"}

// LackedBy reports whether a document has none of the rule's members, or empty texts alone.
func (r Rule) LackedBy(f Fields) bool {
	return !slices.ContainsFunc(r.Members, func(name string) bool { return f.Has(name) && string(f[name]) != `""` })
}

// EchoesID says why a document doesn't echo the request's id, "" if it does.
func EchoesID(f Fields, asked Asked) string { return echoes(f, "request_id", asked.RequestID) }

func echoesTask(f Fields, asked Asked) string { return echoes(f, "task_type", asked.TaskType) }

func echoes(f Fields, name, want string) string {
	switch f.Text(name) {
	case "":
		return name + " is missing, empty or no string"
	case want:
		return ""
	}
	return name + " is another than that of the request"
}

func hasStatus(f Fields, _ Asked) string {
	if f.Text("status") == "" {
		return "the terminal event's status is missing, empty or no string"
	}
	return ""
}

func hasOutputs(names ...string) func(Fields, Asked) string {
	return func(f Fields, _ Asked) string {
		if slices.ContainsFunc(names, func(name string) bool { return f.Object(name) != nil }) {
			return ""
		}
		if slices.ContainsFunc(names, f.Has) {
			return "outputs is not an object"
		}
		return "outputs is missing or null"
	}
}
