package api

import "time"

// AuditEntry says that somebody did something, or was refused it (schemas/openapi.json, "AuditEntry"). What was given
// or told isn't in it.
type AuditEntry struct {
	At   time.Time `json:"at"`
	Team string    `json:"team"` // to which the object belongs, or whoever was refused
	// "token:NAME"; "operator" for who has the server's own token, "anonymous" for who has none that is good, and
	// "local:USER" for a command on the server's machine
	Identity string `json:"identity"`
	Address  string `json:"address,omitempty"` // from which it was asked for; "": not over a network
	Verb     string `json:"verb"`
	Noun     string `json:"noun"`
	Object   string `json:"object,omitempty"` // by its id or name
	Detail   string `json:"detail,omitempty"` // such as the reason of a cancellation
	Result   string `json:"result"`           // "done", or the status with which it was refused
	Count    int64  `json:"count"`            // of refusals that are alike, within a minute; else 1
	Trace    string `json:"trace_id,omitempty"`
}

// AuditFilter chooses entries. Zero fields choose all.
type AuditFilter struct {
	By     string // an identity
	Object string
	Since  time.Time
	After  int64 // AuditPage.Next of the page before
	Limit  int   // 1..1000; 0 is 100
}

// AuditPage is a part of the audit, the newest first.
type AuditPage struct {
	Entries []AuditEntry `json:"entries"`
	Next    *int64       `json:"next"` // nil: that was the last
}
