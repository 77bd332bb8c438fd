package evals_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/agent-on-demand/aod/capsule/evals"
)

func near(got, want float64) bool { return math.Abs(got-want) < 5e-5 }

// The figures are of the closed forms, as tables of statistics have them.
func TestATallyIsAsSureAsTheClosedFormsSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		passed, runs          int
		rate, low, high       float64
		k                     int
		atLeastOne, everyTime float64
	}{
		{17, 20, 0.85, 0.6396, 0.9476, 5, 1, 6188. / 15504},
		{0, 20, 0, 0, 0.1611, 5, 0, 0},
		{20, 20, 1, 0.8389, 1, 20, 1, 1},
		{1, 1, 1, 0.2065, 1, 1, 1, 1},
		{1, 10, 0.1, 0.0179, 0.4042, 3, 0.3, 0},
		{5, 10, 0.5, 0.2366, 0.7634, 2, 1 - 10./45, 10. / 45},
	} {
		tally := evals.Tally{Passed: c.passed, Runs: c.runs}
		low, high := tally.Interval()
		if !near(tally.Rate(), c.rate) || !near(low, c.low) || !near(high, c.high) {
			t.Errorf("%d of %d: %f, from %f to %f", c.passed, c.runs, tally.Rate(), low, high)
		}
		if at, all := tally.PassAt(c.k), tally.PassAll(c.k); !near(at, c.atLeastOne) || !near(all, c.everyTime) {
			t.Errorf("%d of %d, k %d: %f and %f", c.passed, c.runs, c.k, at, all)
		}
	}
	if low, high := (evals.Tally{}).Interval(); low != 0 || high != 1 {
		t.Errorf("of nothing it is from %f to %f", low, high)
	}
}

// Of 1,000 suites of units that are equal at most 5 in a hundred may be told apart; of units that differ most are.
func TestUnitsAreToldApartWhenTheyDiffer(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(1, 2))
	draw := func(rate float64) (tally evals.Tally) {
		for range 20 {
			tally.Add(dice.Float64() < rate)
		}
		return tally
	}
	apart := func(worse float64) (n int) {
		for range 1000 {
			var pairs []evals.Pair
			for _, rate := range []float64{0.5, 0.7, 0.9, 0.95, 1} {
				pairs = append(pairs, evals.Pair{A: draw(rate), B: draw(rate - worse)})
			}
			if evals.Differ(pairs) < 0.05 {
				n++
			}
		}
		return n
	}
	if n := apart(0); n > 50 {
		t.Errorf("%d of 1,000 suites of equal units are told apart", n)
	}
	if n := apart(0.25); n < 950 {
		t.Errorf("only %d of 1,000 suites of different units are told apart", n)
	}
	if p := evals.Differ([]evals.Pair{{A: evals.Tally{Passed: 3, Runs: 3}, B: evals.Tally{Passed: 5, Runs: 5}}, {}}); p != 1 {
		t.Errorf("where all pass it is %f", p)
	}
}

func TestAQuantileIsOneOfTheNumbers(t *testing.T) {
	t.Parallel()
	of := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0.01: 1, 0.5: 3, 0.6: 3, 0.61: 4, 0.95: 5, 1: 5} {
		if got := evals.Quantile(of, q); got != want {
			t.Errorf("%g: %g", q, got)
		}
	}
	if of[0] != 5 || evals.Quantile(nil, 0.5) != 0 {
		t.Error("the numbers changed, or of none there is one")
	}
}
