// Package evals says what repetitions of test cases tell of a unit: how often it passes, how sure that is, and whether
// two units differ.
//
//	Tally           how many runs of a case passed: Rate, Interval, PassAt, PassAll
//	Differ          how likely equal units are to differ as much as two do
//	Quantile        of times, tokens and costs
//
// It is arithmetic: it must not know how a run is made or shown.
//
// Its Go API may change with every release: see docs/stability.md.
package evals

import (
	"math"
	"slices"
)

// z bounds 95 % of a normal distribution.
const z = 1.959963984540054

// Tally counts the runs of a case, and those of them that passed.
type Tally struct{ Passed, Runs int }

// Add counts another run.
func (t *Tally) Add(passed bool) {
	t.Runs++
	if passed {
		t.Passed++
	}
}

// Rate is the share of the runs that passed, from 0 to 1; of no runs 0.
func (t Tally) Rate() float64 {
	if t.Runs == 0 {
		return 0
	}
	return float64(t.Passed) / float64(t.Runs)
}

// Interval is Wilson's score interval of the rate at 95 % (E. B. Wilson, 1927); of no runs it is from 0 to 1.
func (t Tally) Interval() (low, high float64) {
	if t.Runs == 0 {
		return 0, 1
	}
	n, p := float64(t.Runs), t.Rate()
	middle, wide := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max((middle-wide)/(1+z*z/n), 0), min((middle+wide)/(1+z*z/n), 1)
}

// PassAt is pass@k: how likely at least one of k runs passes, for k from 1 to Runs. It is estimated without a bias, by
// all choices of k of the runs.
func (t Tally) PassAt(k int) float64 { return 1 - allOf(t.Runs-t.Passed, t.Runs, k) }

// PassAll is pass^k: how likely all of k runs pass, likewise.
func (t Tally) PassAll(k int) float64 { return allOf(t.Passed, t.Runs, k) }

// allOf is the share of the choices of k out of n that are all among some of them.
func allOf(some, n, k int) float64 {
	share := 1.0
	for i := range k {
		share *= float64(max(some-i, 0)) / float64(n-i)
	}
	return share
}

// Pair is how often two units passed one case.
type Pair struct{ A, B Tally }

// Differ returns how likely two units that are equally good at each case differ at least as much as these do, from 0 to
// 1: below 0.05 they are taken for different. It is the test of Mantel and Haenszel (1959) with the cases as its
// strata, with a correction for continuity; its distribution is one of large numbers. Without a difference that could
// be seen it is 1.
func Differ(cases []Pair) (p float64) {
	var off, variance float64
	for _, c := range cases {
		a, b := float64(c.A.Runs), float64(c.B.Runs)
		n, passed := a+b, float64(c.A.Passed+c.B.Passed)
		if a == 0 || b == 0 {
			continue
		}
		off += float64(c.A.Passed) - a*passed/n
		variance += a * b * passed * (n - passed) / (n * n * (n - 1))
	}
	if variance == 0 {
		return 1
	}
	return math.Erfc(max(math.Abs(off)-0.5, 0) / math.Sqrt(2*variance))
}

// Mean returns the mean of some numbers, to four digits; of none it is 0.
func Mean(of []float64) float64 {
	var sum float64
	for _, x := range of {
		sum += x
	}
	return math.Round(sum/float64(max(len(of), 1))*10_000) / 10_000
}

// Quantile returns the smallest of some numbers that at least the share q of them doesn't exceed, for q above 0; of
// none it is 0.
func Quantile(of []float64, q float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}
