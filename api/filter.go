package api

import "time"

// Filter chooses runs of a list. Zero fields choose all.
type Filter struct {
	Unit     string
	Parent   string
	Session  string // of which they are turns; "": any
	Context  string // to which their clients count them; "": any
	Schedule string // of which they are occurrences, by its name; "": any
	States   []State
	Active   bool // only those that still go on
	Waiting  bool // only those that have a question open
	// Metadata that the runs have, all of it.
	Metadata map[string]string
	Since    time.Time
	Until    time.Time
	Limit    int    // 1 to 1000; 0 is 50
	Cursor   string // Page.Next of the page before
}
