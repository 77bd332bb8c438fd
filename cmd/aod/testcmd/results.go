package testcmd

import (
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/evals"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
)

// testResults are how the test cases of a unit went.
type testResults struct {
	Unit    string       `json:"unit"`
	Variant string       `json:"variant,omitempty"` // of what is compared; "": nothing is
	Passed  int          `json:"passed"`
	Failed  int          `json:"failed"`
	Stopped bool         `json:"stopped,omitempty"` // models had cost so much that not all was run
	Cases   []caseResult `json:"cases"`
}

type caseResult struct {
	Name        string       `json:"name"`
	Passed      bool         `json:"passed"`                // so many of its runs as were asked for
	MS          float64      `json:"ms"`                    // of several runs the median
	Differences []string     `json:"differences,omitempty"` // from what was expected; of several runs the most frequent
	Repeat      *repetitions `json:"repeat,omitempty"`      // nil: it was run once
}

// repetitions are what the runs of one case came to. Shares are from 0 to 1.
type repetitions struct {
	Runs     int              `json:"runs"`
	Passed   int              `json:"passed"`
	Rate     float64          `json:"rate"`
	Interval []float64        `json:"interval,omitempty"` // of the rate, at 95 %; nil where all had the same answers
	Answers  runflags.Answers `json:"answers"`            // of models
	PassAt   []float64        `json:"pass_at_k,omitempty"`
	PassAll  []float64        `json:"pass_all_k,omitempty"`
	MS       spread           `json:"ms"`
	Tokens   spread           `json:"tokens"`
	Cost     api.Cost         `json:"cost"`                   // of all runs
	Score    *float64         `json:"score,omitempty"`        // the mean of what a unit gave that grades; nil: none did
	Grading  api.Cost         `json:"grading_cost,omitempty"` // what that cost
	Failures []failure        `json:"failures,omitempty"`
}

// spread is what is typical of several runs, and what 19 of 20 don't exceed.
type spread struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
}

// failure is a reason for which some runs failed. The most frequent one comes first.
type failure struct {
	Differences []string `json:"differences"`
	Runs        []int    `json:"runs"` // which, from 1
}

// resultOf is what came of a case.
func (s *suite) resultOf(i int) caseResult {
	r := repetitionsOf(s.done[i])
	c := caseResult{Name: s.cases[i].Name, MS: r.MS.P50, Passed: r.Runs == s.flags.repeat && r.Rate >= s.flags.minPass}
	if len(r.Failures) > 0 {
		c.Differences = r.Failures[0].Differences
	}
	if r.Runs == 0 {
		c.Differences = []string{"not run: models had cost --max-cost before"}
	}
	if s.flags.repeat > 1 {
		c.Repeat = &r
	}
	return c
}

func repetitionsOf(all []*outcome) (r repetitions) {
	var tally evals.Tally
	var ms, tokens, scores []float64
	for _, o := range all {
		if o == nil {
			continue
		}
		tally.Add(len(o.differences) == 0)
		ms, tokens = append(ms, float64(o.took.Microseconds())/1000), append(tokens, float64(o.spent.Charged))
		r.Cost, r.Grading = r.Cost+o.spent.Cost, r.Grading+o.grading.Cost
		if o.score != nil {
			scores = append(scores, *o.score)
		}
		r.Answers = o.answers
	}
	r.Runs, r.Passed, r.Rate = tally.Runs, tally.Passed, tally.Rate()
	r.MS, r.Tokens = spreadOf(ms), spreadOf(tokens)
	if r.Answers != runflags.Same {
		low, high := tally.Interval()
		r.Interval = []float64{low, high}
		for k := range tally.Runs {
			r.PassAt, r.PassAll = append(r.PassAt, tally.PassAt(k+1)), append(r.PassAll, tally.PassAll(k+1))
		}
	}
	if len(scores) > 0 {
		mean := evals.Mean(scores)
		r.Score = &mean
	}
	r.Failures = failuresOf(all)
	return r
}

// failuresOf groups the runs that failed by what differed. What a grader says in its own words makes no group, and the
// first one's are shown.
func failuresOf(all []*outcome) []failure {
	var found []failure
	for n, o := range all {
		if o == nil || len(o.differences) == 0 {
			continue
		}
		at := slices.IndexFunc(found, func(f failure) bool {
			return slices.EqualFunc(f.Differences, o.differences, sameVerdict)
		})
		if at < 0 {
			at, found = len(found), append(found, failure{Differences: o.differences})
		}
		if !slices.Equal(found[at].Differences, o.differences) {
			found[at].Differences = firstWords(found[at].Differences)
		}
		found[at].Runs = append(found[at].Runs, n+1)
	}
	slices.SortStableFunc(found, func(a, b failure) int { return len(b.Runs) - len(a.Runs) })
	return found
}

// graded begins a line that judge made, or that tells how a grader ended.
const graded = "grade: "

// verdictOf cuts a line with a grade behind what the grader found, before it says so in its words.
func verdictOf(line string) (verdict, words string) {
	said, isGrade := strings.CutPrefix(line, graded)
	if !isGrade {
		return line, ""
	}
	verdict, words, _ = strings.Cut(said, ": ")
	return graded + verdict, words
}

func sameVerdict(a, b string) bool {
	verdictA, _ := verdictOf(a)
	verdictB, _ := verdictOf(b)
	return verdictA == verdictB
}

// shownWords is how many bytes are shown of what several graders said, each in its words.
const shownWords = 60

// firstWords returns differences with what was said first alone of each grade. It may be called again with them.
func firstWords(of []string) []string {
	of = slices.Clone(of)
	for i, line := range of {
		verdict, words := verdictOf(line)
		if words == "" || strings.HasSuffix(words, "…") {
			continue
		}
		if len(words) > shownWords {
			words = words[:max(strings.LastIndexByte(words[:shownWords], ' '), 0)]
		}
		of[i] = verdict + ": " + strings.ToValidUTF8(words, "") + " …"
	}
	return of
}

func spreadOf(of []float64) spread { return spread{evals.Quantile(of, 0.5), evals.Quantile(of, 0.95)} }
