package api

import (
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Filter chooses runs of a list. Zero fields choose all.
type Filter struct {
	Unit     string
	Parent   string
	Session  string // of which they are turns; "": any
	Context  string // to which their clients count them; "": any
	Schedule string // of which they are occurrences, by its name; "": any
	By       string // who made them: the name of a token; "": anybody
	States   []State
	Roots    bool // only those that no other run asked for
	Active   bool // only those that still go on
	Waiting  bool // only those that have a question open
	// Metadata that the runs have, all of it.
	Metadata map[string]string
	Since    time.Time
	Until    time.Time
	Limit    int    // 1 to 1000; 0 is 50
	Cursor   string // Page.Next of the page before
}

// Page is a part of a list of runs, newest first.
type Page struct {
	Runs []Summary `json:"runs"`
	Next *string   `json:"next"` // nil: that was the last
}

// Summary is what a list tells of a run.
type Summary struct {
	ID         string            `json:"id"`
	Unit       string            `json:"unit"`
	Kind       string            `json:"kind"`
	Parent     string            `json:"parent,omitempty"`
	Root       string            `json:"root"`
	By         string            `json:"by,omitempty"`    // as in a Record
	Owner      *Owner            `json:"owner,omitempty"` // as in a Record
	Metadata   map[string]string `json:"metadata,omitempty"`
	State      State             `json:"state"`
	Status     Status            `json:"status,omitempty"`  // as in a Record
	Waiting    *Waiting          `json:"waiting,omitempty"` // as in a Record
	Outcome    Outcome           `json:"outcome"`
	ExitCode   *int              `json:"exit_code"`
	Error      *RunError         `json:"error"`
	Retries    int               `json:"retries"`
	Models     *ModelUsage       `json:"models,omitempty"` // as in a Record
	Timings    Timings           `json:"timings"`
	CreatedAt  time.Time         `json:"created_at"`
	StartedAt  *time.Time        `json:"started_at"`
	FinishedAt *time.Time        `json:"finished_at"`
}

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

const (
	defaultPage = 100
	mostInPage  = 1000
)

// PageLimit returns how many entries of a list a client gets that asks for so many: 1 to 1000, and
// 100 for 0. Another number is an Input fault.
func PageLimit(asked int) (int, error) {
	if asked < 0 || asked > mostInPage {
		return 0, fault.New(fault.Input, "the limit is %d; it can be 1 to %d", asked, mostInPage)
	}
	if asked == 0 {
		return defaultPage, nil
	}
	return asked, nil
}
