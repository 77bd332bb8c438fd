package testcmd

import (
	"fmt"

	"github.com/agent-on-demand/aod/capsule/evals"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// report is how all variants of a unit went, the one that is judged, or that others are compared with, first.
type report struct {
	Unit     string         `json:"unit"`
	Variants []*testResults `json:"variants"`
	Compared []comparison   `json:"compared"`
}

// comparison says whether two variants can be told apart.
type comparison struct {
	A      string  `json:"a"`
	B      string  `json:"b"`
	RateA  float64 `json:"rate_a"` // of all runs of all cases
	RateB  float64 `json:"rate_b"`
	P      float64 `json:"p"` // how likely equal ones differ so much: see evals.Differ
	Differ bool    `json:"differ"`
}

// sure is the p below which two variants are taken for different.
const sure = 0.05

func (r *report) add(made *testResults) {
	if r.Variants = append(r.Variants, made); len(r.Variants) == 1 {
		r.Unit = made.Unit
		return
	}
	first := r.Variants[0]
	c := comparison{A: first.Variant, B: made.Variant}
	var pairs []evals.Pair
	var a, b evals.Tally
	for i := range made.Cases {
		p := evals.Pair{A: first.Cases[i].tally(), B: made.Cases[i].tally()}
		a.Passed, a.Runs = a.Passed+p.A.Passed, a.Runs+p.A.Runs
		b.Passed, b.Runs = b.Passed+p.B.Passed, b.Runs+p.B.Runs
		pairs = append(pairs, p)
	}
	c.RateA, c.RateB, c.P = a.Rate(), b.Rate(), evals.Differ(pairs)
	c.Differ = c.P < sure
	r.Compared = append(r.Compared, c)
}

// tally counts the runs of a case.
func (c caseResult) tally() (t evals.Tally) {
	if c.Repeat != nil {
		return evals.Tally{Passed: c.Repeat.Passed, Runs: c.Repeat.Runs}
	}
	t.Add(len(c.Differences) == 0)
	return t
}

// judged are the variants whose failures count: of --against that alone which is compared.
func (r *report) judged(flags testFlags) []*testResults {
	if flags.against != "" {
		return r.Variants[:1]
	}
	return r.Variants
}

// failed reports whether a case failed, or the unit got worse.
func (r *report) failed(flags testFlags) bool {
	for _, v := range r.judged(flags) {
		if v.Failed > 0 {
			return true
		}
	}
	return flags.against != "" && r.Compared[0].Differ && r.Compared[0].RateA < r.Compared[0].RateB
}

// tell prints the sums, and writes the file of --junit. The exit code says whether a case failed, or the unit is worse
// than what it is held against.
func (r *report) tell(env *cli.Env, flags testFlags) error {
	if flags.junit != "" {
		if err := writeJUnit(flags.junit, r.judged(flags)); err != nil {
			return err
		}
	}
	document := any(r)
	if len(r.Variants) == 1 {
		document = r.Variants[0]
	}
	return cli.Judge(env, document, r.failed(flags), flags.json, func() { r.show(env.Out, flags.markdown) })
}

func (r *report) show(out *ui.Output, markdown bool) {
	for _, v := range r.Variants {
		if markdown {
			v.showMarkdown(out)
		} else {
			v.showSum(out)
		}
	}
	for _, c := range r.Compared {
		if markdown {
			out.Line("")
		}
		out.Line("%s", c.text())
	}
}

func (c comparison) text() string {
	beside := fmt.Sprintf("%s %s, %s %s", c.A, percent(c.RateA), c.B, percent(c.RateB))
	if !c.Differ {
		return fmt.Sprintf("%s: not told apart (p %.2g)", beside, c.P)
	}
	return fmt.Sprintf("%s: they differ (p %.2g)", beside, c.P)
}
