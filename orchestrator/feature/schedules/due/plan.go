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

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"time"
	_ "time/tzdata" // zones are known wherever the program runs

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// The bounds of what a specification may say.
const (
	MinEvery   = 10 * time.Second
	MaxEvery   = 8784 * time.Hour // a leap year
	MaxGrace   = 8784 * time.Hour
	MaxTimeout = 8784 * time.Hour
	MaxJitter  = 24 * time.Hour
	MaxCount   = 100_000
	MaxNote    = 1000 // characters
)

// DefaultGrace is the grace of a specification that names none.
const DefaultGrace = time.Hour

// Plan is when a schedule is due, and what becomes of occurrences that can't be in time.
type Plan struct {
	Missed  api.MissedPolicy
	Grace   time.Duration
	Overlap api.OverlapPolicy
	Jitter  time.Duration
	Until   time.Time     // zero: no end
	Count   int           // 0: no bound
	Timeout time.Duration // of a run; 0: the unit's

	times times
}

// times finds the first time after another; zero if there is none.
type times interface {
	next(after time.Time) time.Time
}

// Read reads the times and the policies of a specification. The time at which its schedule was
// made is the start of a grid that names none. The error is an Input fault with a finding for each problem;
// each has the JSON pointer of its field.
func Read(spec api.ScheduleSpec, made time.Time) (*Plan, error) {
	r := reader{}
	p := &Plan{Count: spec.Count}
	p.times = r.times(spec, made)
	p.Missed = oneOf(&r, "/missed", spec.Missed, api.MissedLast, api.MissedSkip, api.MissedAll)
	p.Overlap = oneOf(&r, "/overlap", spec.Overlap, api.OverlapSkip, api.OverlapQueue, api.OverlapCancel,
		api.OverlapAllow)
	p.Grace = r.duration("/grace", spec.Grace, 0, MaxGrace, DefaultGrace)
	p.Timeout = r.duration("/timeout", spec.Timeout, time.Millisecond, MaxTimeout, 0)
	p.Jitter = r.duration("/jitter", spec.Jitter, 0, MaxJitter, 0)
	if spec.Count < 0 || spec.Count > MaxCount {
		r.add("/count", "there can be 1 to %d occurrences, or 0 for no bound", MaxCount)
	}
	if len([]rune(spec.Note)) > MaxNote {
		r.add("/note", "the note has more than %d characters", MaxNote)
	}
	if spec.Until != nil {
		p.Until = *spec.Until
	}
	if len(r.findings) > 0 {
		return nil, fault.New(fault.Input, "the schedule's specification has problems").WithFindings(r.findings)
	}
	return p, nil
}

// Next returns the first time after another, without the jitter and in the zone of the
// specification. It is zero if there is none.
func (p *Plan) Next(after time.Time) time.Time {
	next := p.times.next(after)
	if next.IsZero() || !p.Until.IsZero() && next.After(p.Until) {
		return time.Time{}
	}
	return next
}

// Delay returns by how much the occurrences of a schedule are late: less than the jitter, and the
// same for the same name.
func (p *Plan) Delay(name string) time.Duration {
	if p.Jitter <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(name))
	share := time.Duration(binary.BigEndian.Uint32(sum[:4])) // of 1<<32
	return (p.Jitter / time.Millisecond * share >> 32) * time.Millisecond
}

// reader collects what is wrong with a specification.
type reader struct{ findings []fault.Finding }

func (r *reader) add(pointer, format string, args ...any) *fault.Finding {
	r.findings = append(r.findings, fault.Finding{Pointer: pointer, Message: fault.New(fault.Input, format, args...).
		Msg})
	return &r.findings[len(r.findings)-1]
}

func (r *reader) duration(pointer, text string, least, most, otherwise time.Duration) time.Duration {
	if text == "" {
		return otherwise
	}
	d, err := quantity.ParseDuration(text, least, most)
	if err != nil {
		r.add(pointer, "%v", err).Hint = "a duration from " + quantity.DurationText(least) + " to " +
			quantity.DurationText(most) + ", such as 15m or 1h30m"
	}
	return d
}

// oneOf returns a word of which there are a few; the first one is the default.
func oneOf[T ~string](r *reader, pointer string, word T, known ...T) T {
	word = cmp.Or(word, known[0])
	for _, k := range known {
		if word == k {
			return word
		}
	}
	r.add(pointer, "%s is none of the words that there are", fault.Quote(string(word))).
		Hint = fmt.Sprint("one of ", known)
	return known[0]
}

// times reads the one field that says when.
func (r *reader) times(spec api.ScheduleSpec, made time.Time) times {
	given := 0
	for _, text := range []string{spec.Cron, spec.Every, spec.At} {
		if text != "" {
			given++
		}
	}
	if given != 1 {
		r.add("", "it has %d of cron, every and at", given).Hint = "say exactly one of them"
		return nil
	}
	if spec.Start != nil && spec.Every == "" {
		r.add("/start", "only `every` has a start")
	}
	if spec.Every != "" {
		return r.every(spec, made)
	}
	zone := r.zone(spec.Timezone)
	if zone == nil {
		return nil
	}
	if spec.At != "" {
		return r.at(spec.At, zone)
	}
	return r.cron(spec.Cron, zone)
}

func (r *reader) every(spec api.ScheduleSpec, made time.Time) times {
	if spec.Timezone != "" {
		r.add("/timezone", "`every` goes by elapsed time, and has no zone").Hint = "leave it out"
	}
	g := grid{start: made, step: r.duration("/every", spec.Every, MinEvery, MaxEvery, 0), later: spec.Start == nil}
	if spec.Start != nil {
		g.start = *spec.Start
	}
	if y := g.start.Year(); y < minYear || y > maxYear {
		r.add("/start", "the year %d is out of range", y)
	}
	return g
}

// zones are those that were asked for, by name: there are some hundreds.
var zones sync.Map

// zone returns the zone of a name; nil after a finding.
func (r *reader) zone(name string) *time.Location {
	if name == "" {
		return time.UTC
	}
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location)
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" || len(name) > 64 {
		r.add("/timezone", "there is no zone %s", fault.Quote(name)).
			Hint = "a name of the IANA database, such as Europe/Berlin or UTC"
		return nil
	}
	zones.Store(name, zone)
	return zone
}
