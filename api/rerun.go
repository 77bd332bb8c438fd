package api

import "encoding/json"

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
