package api

import (
	"encoding/json"
	"time"
)

// ScheduleSpec is what a schedule is to do, and when: what PUT /v1/schedules/{name} takes
// (schemas/openapi.json, "ScheduleSpec"). Of Cron, Every and At there is exactly one. An empty
// field has the default that is said here.
type ScheduleSpec struct {
	Unit     string            `json:"unit"`
	Input    json.RawMessage   `json:"input,omitempty"` // a JSON object; nil is {}
	Metadata map[string]string `json:"metadata,omitempty"`
	Timeout  string            `json:"timeout,omitempty"` // as that of a Submission
	// its runs may ask a person; else questions are denied at once
	Ask  bool   `json:"ask,omitempty"`
	Note string `json:"note,omitempty"` // the owner's, for people; at most 1,000 characters

	Cron     string     `json:"cron,omitempty"`     // five fields, or @hourly, @daily, @weekly, @monthly, @yearly
	Timezone string     `json:"timezone,omitempty"` // of Cron and At, a name of the IANA database; "UTC" by default
	Every    string     `json:"every,omitempty"`    // a duration of at least 10 s, on a grid from Start
	Start    *time.Time `json:"start,omitempty"`    // of Every; by default when the schedule was made
	At       string     `json:"at,omitempty"`       // once: a local time "2026-12-01T09:00", or one with its offset

	Missed MissedPolicy `json:"missed,omitempty"` // MissedLast by default
	// a duration for which a missed occurrence may be made up for; "1h" by default
	Grace   string        `json:"grace,omitempty"`
	Overlap OverlapPolicy `json:"overlap,omitempty"` // OverlapSkip by default
	// a duration below which each is late by, the same for the same name; none by default
	Jitter string     `json:"jitter,omitempty"`
	Until  *time.Time `json:"until,omitempty"` // there is none after it
	Count  int        `json:"count,omitempty"` // there are no more than so many; 0: no bound
}

// MissedPolicy says what becomes of occurrences whose time has passed while no server ran.
type MissedPolicy string

// The policies of missed occurrences, each of those within the grace.
const (
	MissedLast MissedPolicy = "last" // the last of them is made up for
	MissedSkip MissedPolicy = "skip" // none is
	MissedAll  MissedPolicy = "all"  // all are, one after the other, 100 at most
)

// OverlapPolicy says what becomes of an occurrence while a run of the schedule goes on.
type OverlapPolicy string

// The policies of overlapping occurrences.
const (
	OverlapSkip   OverlapPolicy = "skip"   // it is left out
	OverlapQueue  OverlapPolicy = "queue"  // it waits for the end of the run; one may wait
	OverlapCancel OverlapPolicy = "cancel" // the run is cancelled for it
	OverlapAllow  OverlapPolicy = "allow"  // it runs beside it
)

// ScheduleState is the state of a schedule (specification "Agent Wrapper", ScheduledTask).
type ScheduleState string

// The states of a schedule.
const (
	ScheduleCreated   ScheduleState = "created"   // no occurrence was due yet
	ScheduleActive    ScheduleState = "active"    // it waits for its next occurrence
	ScheduleExecuting ScheduleState = "executing" // a run of it goes on
	SchedulePaused    ScheduleState = "paused"    // a person paused it
	ScheduleEnded     ScheduleState = "ended"     // there is no further occurrence
)

// Schedule starts runs of a unit at given times.
type Schedule struct {
	Name string `json:"name"`
	ScheduleSpec
	Files []File        `json:"files,omitempty"` // its files by their fields: each run gets them
	By    string        `json:"by,omitempty"`    // the name of the token with which it was made; "": it has none
	Owner *Owner        `json:"owner,omitempty"` // nil: of DefaultTeam
	State ScheduleState `json:"state"`
	// when its next occurrence is due, with its jitter; nil: none is planned
	Next      *time.Time  `json:"next"`
	Last      *Occurrence `json:"last,omitempty"`    // nil: there was none
	Problem   string      `json:"problem,omitempty"` // why its next occurrence would be refused; "": nothing known
	Fired     int         `json:"fired"`             // how many occurrences it has had
	CreatedAt time.Time   `json:"created_at"`
	ChangedAt time.Time   `json:"changed_at"`
}

// ScheduleChange says what becomes of a schedule.
type ScheduleChange string

// What becomes of a schedule. A server answers all but the last.
const (
	ScheduleMade      ScheduleChange = "made"
	ScheduleChanged   ScheduleChange = "changed"
	ScheduleUnchanged ScheduleChange = "unchanged"
	ScheduleRemoved   ScheduleChange = "removed"
)

// PlannedSchedule says what would become of a schedule that is put: what PUT
// /v1/schedules/{name}?dry_run=true answers.
type PlannedSchedule struct {
	Name   string         `json:"name"`
	Change ScheduleChange `json:"change"`
	Owner  *Owner         `json:"owner,omitempty"` // nil: DefaultTeam
}

// OccurrenceOutcome says what became of an occurrence.
type OccurrenceOutcome string

// The outcomes of an occurrence.
const (
	OccurrenceStarted   OccurrenceOutcome = "started"   // it has a run
	OccurrenceWaiting   OccurrenceOutcome = "waiting"   // for the end of a run of the schedule
	OccurrenceSkipped   OccurrenceOutcome = "skipped"   // a run of the schedule went on
	OccurrenceMissed    OccurrenceOutcome = "missed"    // no server ran in time
	OccurrenceRefused   OccurrenceOutcome = "refused"   // the unit or the server didn't take it: see the reason
	OccurrenceCancelled OccurrenceOutcome = "cancelled" // its schedule was paused or removed while it waited
)

// Occurrence is one time at which a schedule was to start a run. There is at most one by
// schedule and planned time.
type Occurrence struct {
	Planned time.Time         `json:"planned"` // without the jitter
	Fired   time.Time         `json:"fired"`   // when it was looked at
	LateMS  int64             `json:"late_ms"` // after the planned time with its jitter
	Outcome OccurrenceOutcome `json:"outcome"`
	Run     string            `json:"run,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Manual  bool              `json:"manual,omitempty"` // a person asked for it
}

// SchedulePage is a part of the list of schedules.
type SchedulePage struct {
	Schedules []Schedule `json:"schedules"`
	Next      *int64     `json:"next"` // for the next page; nil: this is the last one
}

// OccurrencePage is a part of a schedule's history, the youngest first.
type OccurrencePage struct {
	Occurrences []Occurrence `json:"occurrences"`
	Next        *int64       `json:"next"` // for the next page; nil: this is the last one
}

// ScheduledTimes are the next times of a schedule, without its jitter, each with the offset that
// holds at its place then.
type ScheduledTimes struct {
	Times []time.Time `json:"times"`
}

// ScheduleRef says which occurrence a run is of.
type ScheduleRef struct {
	Name    string    `json:"name"`
	Planned time.Time `json:"planned_at"`
}
