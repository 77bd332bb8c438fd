package web

import (
	"fmt"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// mostRows is how many runs a tree shows, and mostSiblings how many calls of one run: those that didn't succeed first.
const mostRows, mostSiblings = 120, 30

// tree is the calls of a run, each with its place in time.
type tree struct {
	Top   *node
	Marks []string // of the axis, from its begin to its end
}

// node is a run in the tree.
type node struct {
	api.Tree
	Is    state
	Bars  []bar
	Calls []*node
	// of the calls that aren't shown
	More    int64
	MoreIs  string
	IsSelf  bool // the run whose page it is
	Attempt int  // of its caller, that made it; 0: the caller made no more than one, or nobody knows
}

// bar is a time, as a part of the whole in percent.
type bar struct {
	Class    string
	From, To float64
}

// Width is that of the bar, which can be seen in any case.
func (b bar) Width() string { return fmt.Sprintf("%.1f%%", max(b.To-b.From, 0.6)) }

// X is where the bar begins.
func (b bar) X() string { return fmt.Sprintf("%.1f%%", min(b.From, 99.4)) }

// axis is the time that a tree took, or has taken until now.
type axis struct{ from, to time.Time }

func (a axis) at(t time.Time) float64 {
	if whole := a.to.Sub(a.from); whole > 0 {
		return min(max(float64(t.Sub(a.from))/float64(whole)*100, 0), 100)
	}
	return 0
}

// newTree is a run's tree as a page shows it. The record tells of the run's attempts.
func newTree(of api.Tree, record api.Record, now time.Time) tree {
	a := axis{of.CreatedAt, endOf(of, now)}
	left := mostRows
	t := tree{Top: a.node(of, &left, now)}
	t.Top.IsSelf, t.Top.Bars = true, a.attempts(record, now)
	t.Top.Is = stateOf(record.State, record.Outcome, record.Question != nil)
	if len(record.Attempts) > 0 {
		for _, call := range t.Top.Calls {
			call.Attempt = attemptAt(record, call.CreatedAt)
		}
	}
	const marks = 4
	for i := range marks + 1 {
		t.Marks = append(t.Marks, span(a.to.Sub(a.from)*time.Duration(i)/marks))
	}
	return t
}

// attemptAt is the number of the attempt of a run at a time. One that failed ended its calls.
func attemptAt(record api.Record, at time.Time) int {
	over := slices.IndexFunc(record.Attempts, func(a api.Attempt) bool { return at.Before(a.FinishedAt) })
	if over < 0 {
		over = len(record.Attempts)
	}
	return over + 1
}

// endOf is when the last run of a tree ended; now, if one goes on.
func endOf(of api.Tree, now time.Time) time.Time {
	if of.FinishedAt == nil {
		return now
	}
	end := *of.FinishedAt
	for _, call := range of.Calls {
		if at := endOf(call, now); at.After(end) {
			end = at
		}
	}
	return end
}

// node is a run with as many of its calls as are left to show.
func (a axis) node(of api.Tree, left *int, now time.Time) *node {
	n := &node{Tree: of, Is: stateOf(of.State, of.Outcome, false), Bars: a.bars(of, now)}
	n.Tree.Calls = nil
	*left--
	shown, hidden := choose(of.Calls, min(mostSiblings, max(*left, 0)))
	for _, call := range shown {
		n.Calls = append(n.Calls, a.node(call, left, now))
	}
	n.More = int64(len(hidden))
	failed := 0
	for _, call := range hidden {
		if is := stateOf(call.State, call.Outcome, false); is.Class == "bad" || is.Class == "late" {
			failed++
		}
	}
	if failed > 0 {
		n.MoreIs = num(int64(failed)) + " of them failed"
	}
	return n
}

// choose returns at most so many calls in their order, those that didn't succeed before others, and the rest.
func choose(calls []api.Tree, most int) (shown, hidden []api.Tree) {
	if len(calls) <= most {
		return calls, nil
	}
	chosen := make([]bool, len(calls))
	for _, wanted := range []bool{true, false} {
		for i, call := range calls {
			if most > 0 && !chosen[i] && (call.Outcome != api.Success) == wanted {
				chosen[i] = true
				most--
			}
		}
	}
	for i, call := range calls {
		if chosen[i] {
			shown = append(shown, call)
		} else {
			hidden = append(hidden, call)
		}
	}
	return shown, hidden
}

// bars are the time that a run waited, and that in which it ran.
func (a axis) bars(of api.Tree, now time.Time) []bar {
	end := now
	if of.FinishedAt != nil {
		end = *of.FinishedAt
	}
	if of.StartedAt == nil {
		return []bar{{"q", a.at(of.CreatedAt), a.at(end)}}
	}
	return []bar{
		{"q", a.at(of.CreatedAt), a.at(*of.StartedAt)},
		{stateOf(of.State, of.Outcome, false).Class, a.at(*of.StartedAt), a.at(end)},
	}
}

// attempts are the bars of a run with those attempts that failed.
func (a axis) attempts(record api.Record, now time.Time) []bar {
	var bars []bar
	var from time.Time
	failed := 0
	for _, t := range record.Transitions {
		switch {
		case t.State == api.Running:
			from = t.At
		case !from.IsZero():
			class := stateOf(record.State, record.Outcome, false).Class
			if failed < len(record.Attempts) {
				class, failed = "bad", failed+1
			}
			bars = append(bars, bar{class, a.at(from), a.at(t.At)})
			from = time.Time{}
		}
	}
	if !from.IsZero() {
		bars = append(bars, bar{"run", a.at(from), a.at(now)})
	}
	return bars
}
