package api

import "time"

// ChangedFilter chooses runs that nobody called, by their last transition. Zero fields choose all.
type ChangedFilter struct {
	Unit    string
	Units   []string // any of these and Unit; at most 32
	Context string   // to which their clients count them; "": any
	States  []State  // any of them, at the time of the first page
	Since   time.Time
	Limit   int    // 1 to 100; 0 is 50
	Cursor  string // ChangedPage.Next of the page before
}

// ChangedPage is a part of a list of runs by their last transition, the latest first. All pages
// are of the moment of the first one: a run that changes meanwhile keeps its place, and new ones
// aren't shown.
type ChangedPage struct {
	Runs  []Record `json:"runs"`  // as they are now, without Input and Output
	Next  string   `json:"next"`  // "": that was the last
	Total int      `json:"total"` // of all pages
}
