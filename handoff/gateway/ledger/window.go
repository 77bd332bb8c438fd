package ledger

import (
	"slices"
	"time"
)

// Window is a limit that holds for a time, such as a day, and what was spent in it before.
type Window struct {
	Name     string
	Limit    Amount // 0 bounds nothing
	Spent    Amount // settled
	Reserved Amount // set aside
	// Ends returns when the time that a moment is in ends, and the next one begins.
	Ends func(at time.Time) time.Time
}

// NextDay is Window.Ends of days in UTC.
func NextDay(at time.Time) time.Time {
	y, m, d := at.UTC().Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// NextMonth is Window.Ends of the months of the calendar, in UTC.
func NextMonth(at time.Time) time.Time {
	y, m, _ := at.UTC().Date()
	return time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
}

// purse is what was spent of one limit: in all time, or in the window of a moment.
type purse struct {
	rule     Window    // of all time it has the limit alone
	ends     time.Time // zero: never
	spent    Amount    // settled
	reserved Amount
}

// current returns the purses of an account at a moment. What is set aside in a window that is over counts there.
func (a *account) current(now time.Time) []*purse {
	for i, p := range a.purses {
		if !p.ends.IsZero() && !now.Before(p.ends) {
			a.purses[i] = &purse{rule: p.rule, ends: p.rule.Ends(now)}
		}
	}
	return a.purses
}

// window returns the purse of a window by its name; nil: the account has none.
func (a *account) window(name string, now time.Time) *purse {
	all := a.current(now)
	if i := slices.IndexFunc(all, func(p *purse) bool { return p.rule.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// lacks returns what an amount exceeds where so much has been taken already; nil: nothing.
func (p *purse) lacks(taken, worst Amount) *Excess {
	sum, limit := taken.Plus(worst), p.rule.Limit
	e := &Excess{Window: p.rule.Name, Opens: p.ends}
	switch {
	case limit.Tokens > 0 && sum.Tokens > limit.Tokens:
		e.Limit, e.Spent, e.Needed = limit.Tokens, taken.Tokens, worst.Tokens
	case limit.Cost > 0 && sum.Cost > limit.Cost:
		e.Cost, e.Limit, e.Spent, e.Needed = true, limit.Cost, taken.Cost, worst.Cost
	default:
		return nil
	}
	return e
}
