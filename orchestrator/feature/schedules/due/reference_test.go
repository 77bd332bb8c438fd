package due

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// A reference that goes from minute to minute: it knows no offsets, only what a clock shows.

// shown is a minute and what the clock of a zone shows then.
type shown struct{ at, wall time.Time }

// minutes are those of a zone between two times.
func minutes(zone *time.Location, from, to time.Time) []shown {
	var all []shown
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		_, offset := at.In(zone).Zone()
		all = append(all, shown{at, at.Add(time.Duration(offset) * time.Second)})
	}
	return all
}

// expression is one by its fields, each a list of numbers; nil is any.
type expression struct {
	fields [5][]int
	sets   [5]uint64 // the same
	text   string
}

// known returns the expression with its sets.
func (e expression) known() expression {
	for i, field := range e.fields {
		for _, n := range field {
			e.sets[i] |= 1 << n
		}
		if field == nil {
			e.sets[i] = 1<<64 - 1
		}
	}
	return e
}

func (e expression) matches(wall time.Time) bool {
	in := func(field, n int) bool { return e.sets[field]>>n&1 == 1 }
	if !in(0, wall.Minute()) || !in(1, wall.Hour()) || !in(3, int(wall.Month())) {
		return false
	}
	day, weekday := in(2, wall.Day()), in(4, int(wall.Weekday()))
	if e.fields[2] == nil || e.fields[4] == nil {
		return day && weekday
	}
	return day || weekday
}

// reference returns the times of an expression among the minutes. The first day is only looked at.
func reference(e expression, all []shown) []time.Time {
	var times []time.Time
	e = e.known()
	byElapsed := e.fields[0] == nil || e.fields[1] == nil
	newest := all[0].wall
	dates := datesOf(all)
	for _, m := range all[1:] {
		if byElapsed {
			if e.matches(m.wall) {
				times = append(times, m.at)
			}
			continue
		}
		due := false
		for newest.Before(m.wall) {
			newest = newest.Add(time.Minute)
			due = due || e.matches(newest) && dates[dateOf(newest)]
		}
		if due {
			times = append(times, m.at)
		}
	}
	return times
}

func datesOf(all []shown) map[int64]bool {
	dates := map[int64]bool{}
	last := int64(0)
	for _, m := range all {
		if date := dateOf(m.wall); date != last {
			dates[date], last = true, date
		}
	}
	return dates
}

func dateOf(wall time.Time) int64 { return wall.Unix() / 86400 }

// expressionOf reads `*`, numbers and lists of them.
func expressionOf(t testing.TB, text string) expression {
	t.Helper()
	e := expression{text: text}
	for i, field := range strings.Fields(text) {
		if field == "*" {
			continue
		}
		for _, one := range strings.Split(field, ",") {
			n, err := strconv.Atoi(one)
			if err != nil {
				t.Fatal(err)
			}
			e.fields[i] = append(e.fields[i], n)
		}
	}
	return e
}

// agrees holds the times of a plan against those of the reference.
func agrees(t *testing.T, p *Plan, want []time.Time, from, to time.Time) {
	t.Helper()
	after, n := from, 0
	for ; ; n++ {
		next := p.Next(after)
		if next.IsZero() || !next.Before(to) {
			break
		}
		if !next.After(after) {
			t.Fatalf("after %v comes %v", after, next)
		}
		if n >= len(want) || !next.Equal(want[n]) {
			wanted := "nothing"
			if n < len(want) {
				wanted = want[n].In(next.Location()).String()
			}
			t.Fatalf("after %v comes %v, want %s", after.In(next.Location()), next, wanted)
		}
		after = next
	}
	if n != len(want) {
		t.Fatalf("after %v nothing comes, want %v", after, want[n])
	}
}
