// Package checklist judges what a program was seen to do, rule by rule, and shows the verdicts: the one frame of all
// conformance checks.
//
// A check makes all its observations first; then each Rule judges them alone, so that the order of rules changes
// nothing but the order of a report.
//
// It must not know who is judged, nor by which specification.
package checklist

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
	Advice        Verdict = "advice"         // the rule is kept, and readers would be better served otherwise
	NotApplicable Verdict = "not_applicable" // there was nothing to judge
)

// Rule is one rule of a specification. It judges observations of the type E.
type Rule[E any] struct {
	ID      string // stable
	Title   string
	Section string // of the specification
	Judge   func(E) (Verdict, string)
}

// NewRule returns a rule.
func NewRule[E any](id, title, section string, judge func(E) (Verdict, string)) Rule[E] {
	return Rule[E]{ID: id, Title: title, Section: section, Judge: judge}
}

// Result is one rule with its verdict.
type Result struct {
	ID      string  `json:"id"` // stable
	Title   string  `json:"title"`
	Section string  `json:"section"` // of the specification, or of AOD's own guide if it has none
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"` // quotes no value of the one that is judged
}

// Results are the verdicts of all rules, in a fixed order.
type Results []Result

// Judge judges observations by all rules.
func Judge[E any](rules []Rule[E], seen E) Results {
	results := make(Results, 0, len(rules))
	for _, rule := range rules {
		verdict, why := rule.Judge(seen)
		results = append(results,
			Result{ID: rule.ID, Title: rule.Title, Section: rule.Section, Verdict: verdict, Why: why})
	}
	return results
}

// Failed reports whether any rule is broken. One that isn't applicable is not.
func (r Results) Failed() bool { return r.Count(Fail) > 0 }

// Count returns how many rules got that verdict.
func (r Results) Count(v Verdict) int {
	n := 0
	for _, result := range r {
		if result.Verdict == v {
			n++
		}
	}
	return n
}

// WriteTable writes the results for a person: a line for each rule, with the reason below
// unless it passed, and the totals.
func (r Results) WriteTable(w io.Writer, heading string) error {
	b := bytes.NewBufferString(heading + "\n")
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	words := map[Verdict]string{Pass: "pass", Fail: "FAIL", Advice: "advice", NotApplicable: "n/a"}
	for _, c := range r {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", words[c.Verdict], c.ID, c.Title) // into memory
		if c.Verdict == Fail {
			_, _ = fmt.Fprintf(table, "\t\t↳ %s (%s)\n", c.Why, c.Section)
		} else if c.Verdict != Pass && c.Why != "" {
			_, _ = fmt.Fprintf(table, "\t\t↳ %s\n", c.Why)
		}
	}
	_ = table.Flush() // into memory
	fmt.Fprintf(b, "%d passed, %d failed, ", r.Count(Pass), r.Count(Fail))
	if advised := r.Count(Advice); advised > 0 {
		fmt.Fprintf(b, "%d with advice, ", advised)
	}
	fmt.Fprintf(b, "%d not applicable\n", r.Count(NotApplicable))
	_, err := b.WriteTo(w)
	return err
}

// Report is what a peer of a network protocol did, judged by all rules.
type Report struct {
	Target   string  `json:"target"`
	TaskType string  `json:"task_type,omitempty"`
	Checks   Results `json:"checks"`
}

// Failed reports whether any rule is broken.
func (r Report) Failed() bool { return r.Checks.Failed() }

// Count returns how many rules got that verdict.
func (r Report) Count(v Verdict) int { return r.Checks.Count(v) }

// WriteTable writes the report for a person.
func (r Report) WriteTable(w io.Writer) error {
	heading := r.Target
	if r.TaskType != "" {
		heading += fmt.Sprintf(" (%q)", r.TaskType)
	}
	return r.Checks.WriteTable(w, heading)
}
