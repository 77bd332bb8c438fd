package check

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
)

// Verdict is the outcome of one rule.
type Verdict string

// The verdicts.
const (
	Pass          Verdict = "pass"
	Fail          Verdict = "fail"
	Advice        Verdict = "advice"         // the contract is kept, and readers would be better served otherwise
	NotApplicable Verdict = "not_applicable" // there was nothing to judge
)

// Result is one rule with its verdict.
type Result struct {
	ID      string  `json:"id"` // stable
	Title   string  `json:"title"`
	Section string  `json:"section"` // of the specification, or of AOD's own guide if it has none
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"` // empty for a pass; quotes no value of the agent's
}

// Report is the result of Agent for one agent, every rule in a fixed order.
type Report struct {
	Target   string   `json:"target"`
	TaskType string   `json:"task_type,omitempty"`
	Checks   []Result `json:"checks"`
}

// Failed reports whether any rule is broken.
func (r Report) Failed() bool { return r.Count(Fail) > 0 }

// Count returns how many rules got that verdict.
func (r Report) Count(v Verdict) int {
	var n int
	for _, result := range r.Checks {
		if result.Verdict == v {
			n++
		}
	}
	return n
}

// WriteTable writes the report for a person: a line for each rule, with the reason below
// unless it passed, and the totals.
func (r Report) WriteTable(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString(r.Target)
	if r.TaskType != "" {
		fmt.Fprintf(&b, " (%q)", r.TaskType)
	}
	b.WriteByte('\n')
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	words := map[Verdict]string{Pass: "pass", Fail: "FAIL", Advice: "advice", NotApplicable: "n/a"}
	for _, c := range r.Checks {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", words[c.Verdict], c.ID, c.Title) // into memory
		if c.Verdict == Fail {
			_, _ = fmt.Fprintf(table, "\t\t↳ %s (%s)\n", c.Why, c.Section)
		} else if c.Why != "" {
			_, _ = fmt.Fprintf(table, "\t\t↳ %s\n", c.Why)
		}
	}
	_ = table.Flush() // into memory
	fmt.Fprintf(&b, "%d passed, %d failed, ", r.Count(Pass), r.Count(Fail))
	if advised := r.Count(Advice); advised > 0 {
		fmt.Fprintf(&b, "%d with advice, ", advised)
	}
	fmt.Fprintf(&b, "%d not applicable\n", r.Count(NotApplicable))
	_, err := b.WriteTo(w)
	return err
}
