package due

import "time"

// A wall time is what the clock of a zone shows. It is kept as a time.Time in UTC, in which every
// minute is there once.

// mostOffset is more than any zone is away from UTC, and more than any change of it.
const mostOffset = 26 * time.Hour

// instantOf returns the first instant at which the clock of a zone shows a wall time. One that the
// clock skips has the first instant after the gap. It returns false for a date that the zone
// doesn't have.
func instantOf(wall time.Time, zone *time.Location) (at time.Time, there bool) {
	segment := segmentAt(wall.Add(-mostOffset), zone)
	for {
		at = wall.Add(-segment.offset)
		if at.Before(segment.start) {
			return segment.start.In(zone), segment.hasDateBefore(wall)
		}
		if segment.end.IsZero() || at.Before(segment.end) {
			return at.In(zone), true
		}
		before := segment
		segment = segmentAt(segment.end, zone)
		segment.before = before.offset
	}
}

// segment is a time in which a zone has one offset.
type segment struct {
	start, end time.Time // zero: without end
	offset     time.Duration
	before     time.Duration // that of the segment before, where it is known
	zone       *time.Location
}

func segmentAt(t time.Time, zone *time.Location) segment {
	local := t.In(zone)
	_, offset := local.Zone()
	start, end := local.ZoneBounds()
	return segment{start: start, end: end, offset: time.Duration(offset) * time.Second, zone: zone}
}

// hasDateBefore reports whether the date of a wall time in the gap before the segment is one that
// the zone has in part.
func (s segment) hasDateBefore(wall time.Time) bool {
	from, to := wallAt(s.start, s.before), wallAt(s.start, s.offset) // the gap
	day := wall.Truncate(24 * time.Hour)
	return from.After(day) || to.Before(day.Add(24*time.Hour))
}

// wallAt returns the wall time at an instant.
func wallAt(t time.Time, offset time.Duration) time.Time { return t.Add(offset).UTC() }

// fixed are times of day, each of which comes once.
type fixed struct {
	pattern
	zone *time.Location
}

func (f fixed) next(after time.Time) time.Time {
	wall := wallAt(after, segmentAt(after, f.zone).offset)
	for { // what the clock has shown or skipped before has come
		if wall = f.after(wall); wall.IsZero() {
			return wall
		}
		if at, there := instantOf(wall, f.zone); there && at.After(after) {
			return at
		}
	}
}

// elapsed are times at which the clock shows what a pattern says, as often as it does.
type elapsed struct {
	pattern
	zone *time.Location
}

func (e elapsed) next(after time.Time) time.Time {
	for s := segmentAt(after, e.zone); ; {
		wall := e.after(wallAt(after, s.offset))
		if wall.IsZero() {
			return wall
		}
		if at := wall.Add(-s.offset); s.end.IsZero() || at.Before(s.end) {
			return at.In(e.zone)
		}
		after = s.end.Add(-time.Nanosecond)
		s = segmentAt(s.end, e.zone)
	}
}
