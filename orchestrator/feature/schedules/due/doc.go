// Package due says at which times a schedule is due: it reads the times of a specification
// and finds the next one after another. It is pure: it knows no clock, no store and no runs.
//
//	Read        a specification becomes a Plan, or all its problems at once
//	Plan.Next   the first time after another; the zero time where there is none
//	Plan.Delay  by how much the occurrences of a name are late, which is the jitter
//
// Where a zone changes its offset, expressions go by Debian's cron. One with a `*` in its minute
// or its hour goes by elapsed time: what the clock of the zone skips is left out, and what it
// shows twice comes twice. Any other one is of fixed times, each of which comes once a day: one
// that the clock skips comes at the first instant after the gap, one that it shows twice comes
// at the first of both. A date that the zone doesn't have at all has no times.
//
// Its Go API may change with every release: see docs/stability.md.
package due
