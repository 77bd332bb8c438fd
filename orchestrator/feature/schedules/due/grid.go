package due

import (
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Years outside of these aren't times of a schedule.
const (
	minYear = 1970
	maxYear = 2199
)

var end = time.Date(maxYear+1, 1, 1, 0, 0, 0, 0, time.UTC)

// grid is of times at the same distance.
type grid struct {
	start time.Time
	step  time.Duration
	later bool // the first one is a step after the start
}

func (g grid) next(after time.Time) time.Time {
	first := g.start
	if g.later {
		first = g.start.Add(g.step)
	}
	if after.Before(first) {
		return first
	}
	if after.After(end) {
		return time.Time{}
	}
	steps := after.Sub(first)/g.step + 1
	return first.Add(steps * g.step)
}

// once is one time.
type once time.Time

func (o once) next(after time.Time) time.Time {
	if at := time.Time(o); at.After(after) {
		return at
	}
	return time.Time{}
}

// The forms of a time: with its offset, or of a zone.
var (
	withOffset = []string{time.RFC3339, "2006-01-02T15:04Z07:00"}
	ofZone     = []string{"2006-01-02T15:04", "2006-01-02T15:04:05"}
)

func (r *reader) at(text string, zone *time.Location) times {
	for _, form := range withOffset {
		if at, err := time.Parse(form, text); err == nil {
			return r.within(at)
		}
	}
	for _, form := range ofZone {
		wall, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		at, there := instantOf(wall, zone)
		if !there {
			r.add("/at", "the zone has no such date")
		}
		return r.within(at)
	}
	r.add("/at", "cannot read %s as a time", fault.Quote(text)).
		Hint = "a local time such as 2026-12-01T09:00, or one with its offset such as 2026-12-01T09:00+01:00"
	return nil
}

func (r *reader) within(at time.Time) times {
	if y := at.Year(); y < minYear || y > maxYear {
		r.add("/at", "the year %d is out of range", y)
	}
	return once(at)
}
