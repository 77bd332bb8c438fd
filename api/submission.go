package api

import "encoding/json"

// Submission is what POST /v1/runs takes as JSON (schemas/openapi.json, "Submission"). As a
// form it has the same fields, and the caller's files beside them.
type Submission struct {
	Unit     string            `json:"unit,omitempty"`     // "" with a session
	Session  string            `json:"session,omitempty"`  // of the unit: the run is its next turn
	Input    json.RawMessage   `json:"input"`              // a JSON object
	Timeout  string            `json:"timeout,omitempty"`  // a duration such as "30s"; "": the unit's, or the server's
	Metadata map[string]string `json:"metadata,omitempty"` // what the run is about: see CheckMetadata
	// Unattended says that nobody answers what the run asks: its questions are denied at once.
	Unattended bool `json:"unattended,omitempty"`
	// Context is the conversation or group that the run is counted to: see CheckContext.
	Context string `json:"context,omitempty"`
	// Env and Dir are of the program of a wrapped agent: variables that its agent.caller_env names,
	// and a directory below that in which it starts.
	Env map[string]string `json:"env,omitempty"`
	Dir string            `json:"dir,omitempty"`
}

// Rerun says where a flow is to begin again; of another unit, and with the zero value, all is
// done again.
type Rerun struct {
	// From is the address of a step, such as review#2, or RerunFailed: the steps before it are
	// taken over. "": from the beginning.
	From string `json:"from,omitempty"`
	// Set is an object of what the state has before that step, in place of what it had.
	Set json.RawMessage `json:"set,omitempty"`
}

// RerunFailed as Rerun.From runs what has failed, or is missing, and what comes after it.
const RerunFailed = "failed"
