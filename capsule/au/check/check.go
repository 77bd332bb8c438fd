package check

import "fmt"

// Mark is the result of a check, in one word.
type Mark string

// The marks.
const (
	Pass          Mark = "pass"
	Fail          Mark = "fail"
	NotApplicable Mark = "not_applicable" // there was nothing to judge
)

// Verdict is a check's result and its reason. It shows nothing of inputs and outputs.
type Verdict struct {
	Mark Mark   `json:"verdict"`
	Why  string `json:"why"`
}

func pass(format string, args ...any) Verdict {
	return Verdict{Mark: Pass, Why: fmt.Sprintf(format, args...)}
}

func fail(format string, args ...any) Verdict {
	return Verdict{Mark: Fail, Why: fmt.Sprintf(format, args...)}
}

func notApplicable(format string, args ...any) Verdict {
	return Verdict{Mark: NotApplicable, Why: fmt.Sprintf(format, args...)}
}

// Check is one item of the specification's checklist (section 10).
type Check struct {
	ID      string `json:"id"` // stable
	Title   string `json:"title"`
	Section string `json:"section"` // of the specification

	judge func(*bench) Verdict
}

// Judge judges an observation by this check. It depends on nothing else.
func (c Check) Judge(o Observation) Verdict { return newBench(o).verdict(c) }

// Result is one line of a report.
type Result struct {
	Check
	Verdict
}

// Report holds the result of every check, in the order of Checks.
type Report struct {
	Results []Result `json:"checks"`
}

// Judge judges an observation by all checks.
func Judge(o Observation) Report {
	b := newBench(o)
	var report Report
	for _, c := range Checks {
		report.Results = append(report.Results, Result{Check: c, Verdict: b.verdict(c)})
	}
	return report
}

// verdict judges by one check. Of a unit that could not be started nothing was seen, so nothing
// of it is good.
func (b *bench) verdict(c Check) Verdict {
	if c.ID != describeID && b.Runs[ScenarioDescribe].notStarted() {
		return notApplicable(couldNotStart)
	}
	return c.judge(b)
}

// Failed reports whether any check failed. One that isn't applicable has not failed.
func (r Report) Failed() bool { return r.Count(Fail) > 0 }

// Count returns how many results have the mark.
func (r Report) Count(m Mark) int {
	n := 0
	for _, result := range r.Results {
		if result.Mark == m {
			n++
		}
	}
	return n
}
