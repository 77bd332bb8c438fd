package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Schedules makes schedules and tells of them.
type Schedules struct{ conn *conn }

// Put makes a schedule, or gives one another specification, and reports whether it is new.
// Each of its runs gets the files, which are sent as those of a Submission; without files it has
// none, whatever it had before.
func (c Schedules) Put(
	ctx context.Context, name string, spec api.ScheduleSpec, files []InputFile,
) (schedule api.Schedule, created bool, err error) {
	return c.put(ctx, toSchedule(http.MethodPut, name), spec, files)
}

// Add is Put for a schedule that must be new: where another has the name, that one
// stays as it is, and the error is an Exists fault. One that is just the same is no other one.
func (c Schedules) Add(
	ctx context.Context, name string, spec api.ScheduleSpec, files []InputFile,
) (schedule api.Schedule, created bool, err error) {
	r := toSchedule(http.MethodPut, name)
	r.header["If-None-Match"] = "*"
	return c.put(ctx, r, spec, files)
}

// Try says what Put would do, or returns the error that it would have. Nothing is
// changed.
func (c Schedules) Try(
	ctx context.Context, name string, spec api.ScheduleSpec, files []InputFile,
) (would api.PlannedSchedule, err error) {
	r, err := withSchedule(toSchedule(http.MethodPut, name), spec, files)
	if err != nil {
		return would, err
	}
	r.query = url.Values{"dry_run": {"true"}}
	return got[api.PlannedSchedule](ctx, c.conn, r)
}

func (c Schedules) put(
	ctx context.Context, r request, spec api.ScheduleSpec, files []InputFile,
) (schedule api.Schedule, created bool, err error) {
	if r, err = withSchedule(r, spec, files); err != nil {
		return schedule, false, err
	}
	status, err := c.conn.call(ctx, r, &schedule)
	return schedule, err == nil && status == http.StatusCreated, err
}

// withSchedule is a request with a specification and files.
func withSchedule(r request, spec api.ScheduleSpec, files []InputFile) (request, error) {
	if len(files) == 0 {
		return r.with(spec), nil
	}
	raw, err := strictjson.Encode(spec)
	if err != nil {
		return r, fault.Wrap(fault.Input, err, "the schedule can't be written as JSON")
	}
	return r.withForm([]field{{"schedule", string(raw)}}, files, nil), nil
}

// Get returns a schedule as it is now, or a NotFound fault.
func (c Schedules) Get(ctx context.Context, name string) (api.Schedule, error) {
	return got[api.Schedule](ctx, c.conn, toSchedule(http.MethodGet, name))
}

// Pause pauses a schedule: it has no occurrences until Resume. Its runs go on.
func (c Schedules) Pause(ctx context.Context, name string) (api.Schedule, error) {
	return got[api.Schedule](ctx, c.conn, toSchedule(http.MethodPost, name, "pause"))
}

// Resume has a paused schedule go on.
func (c Schedules) Resume(ctx context.Context, name string) (api.Schedule, error) {
	return got[api.Schedule](ctx, c.conn, toSchedule(http.MethodPost, name, "resume"))
}

// Delete removes a schedule with its history. Its runs stay, and those that go on do so.
func (c Schedules) Delete(ctx context.Context, name string) error {
	_, err := c.conn.call(ctx, toSchedule(http.MethodDelete, name), nil)
	return err
}

// Run starts a run of a schedule now, whatever its times are, and returns the run's record
// as it is then. After a lost connection it may have started all the same.
func (c Schedules) Run(ctx context.Context, name string) (api.Record, error) {
	r := toSchedule(http.MethodPost, name, "run")
	r.once = true
	return c.conn.record(ctx, r)
}

// Next returns the next times of a schedule, at most n of 1 to 100.
func (c Schedules) Next(ctx context.Context, name string, n int) ([]time.Time, error) {
	return c.times(ctx, toSchedule(http.MethodGet, name, "next"), n)
}

// Preview returns the next times that a schedule would have, at most n of 1 to 100. What else
// the specification says isn't looked at.
func (c Schedules) Preview(ctx context.Context, spec api.ScheduleSpec, n int) ([]time.Time, error) {
	return c.times(ctx, to(http.MethodPost, "schedules", "preview").with(spec), n)
}

func (c Schedules) times(ctx context.Context, r request, n int) ([]time.Time, error) {
	r.query = url.Values{"n": {strconv.Itoa(n)}}
	next, err := got[api.ScheduledTimes](ctx, c.conn, r)
	return next.Times, err
}

// List lists schedules, the newest first. It requests pages of them as they are wanted. After
// an error it yields no more.
func (c Schedules) List(ctx context.Context) iter.Seq2[api.Schedule, error] {
	return numbered(ctx, c.conn, to(http.MethodGet, "schedules"), 1000,
		func(p api.SchedulePage) ([]api.Schedule, *int64) { return p.Schedules, p.Next })
}

// Occurrences lists the history of a schedule, the youngest first, as List does.
func (c Schedules) Occurrences(ctx context.Context, name string) iter.Seq2[api.Occurrence, error] {
	return numbered(ctx, c.conn, toSchedule(http.MethodGet, name, "occurrences"), 1000,
		func(p api.OccurrencePage) ([]api.Occurrence, *int64) { return p.Occurrences, p.Next })
}
