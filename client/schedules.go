package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// PutSchedule makes a schedule, or gives one another specification, and reports whether it is new.
// Each of its runs gets the files, which are sent as those of a Submission; without files it has
// none, whatever it had before.
func (c *Client) PutSchedule(
	ctx context.Context, name string, spec api.ScheduleSpec, files []InputFile,
) (schedule api.Schedule, created bool, err error) {
	return c.putSchedule(ctx, toSchedule(http.MethodPut, name), spec, files)
}

// AddSchedule is PutSchedule for a schedule that must be new: where another has the name, that one
// stays as it is, and the error is an Exists fault. One that is just the same is no other one.
func (c *Client) AddSchedule(
	ctx context.Context, name string, spec api.ScheduleSpec, files []InputFile,
) (schedule api.Schedule, created bool, err error) {
	r := toSchedule(http.MethodPut, name)
	r.header["If-None-Match"] = "*"
	return c.putSchedule(ctx, r, spec, files)
}

// TrySchedule says what PutSchedule would do, or returns the error that it would have. Nothing is
// changed.
func (c *Client) TrySchedule(
	ctx context.Context, name string, spec api.ScheduleSpec, files []InputFile,
) (would api.PlannedSchedule, err error) {
	r, err := withSchedule(toSchedule(http.MethodPut, name), spec, files)
	if err != nil {
		return would, err
	}
	r.query = url.Values{"dry_run": {"true"}}
	return got[api.PlannedSchedule](ctx, c, r)
}

func (c *Client) putSchedule(
	ctx context.Context, r request, spec api.ScheduleSpec, files []InputFile,
) (schedule api.Schedule, created bool, err error) {
	if r, err = withSchedule(r, spec, files); err != nil {
		return schedule, false, err
	}
	status, err := c.call(ctx, r, &schedule)
	return schedule, err == nil && status == http.StatusCreated, err
}

// withSchedule is a request with a specification and files.
func withSchedule(r request, spec api.ScheduleSpec, files []InputFile) (request, error) {
	if len(files) == 0 {
		return r.with(spec), nil
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return r, fault.Wrap(fault.Input, err, "the schedule can't be written as JSON")
	}
	return r.withForm([]field{{"schedule", string(raw)}}, files, nil), nil
}

// Schedule returns a schedule as it is now, or a NotFound fault.
func (c *Client) Schedule(ctx context.Context, name string) (api.Schedule, error) {
	return got[api.Schedule](ctx, c, toSchedule(http.MethodGet, name))
}

// PauseSchedule pauses a schedule: it has no occurrences until ResumeSchedule. Its runs go on.
func (c *Client) PauseSchedule(ctx context.Context, name string) (api.Schedule, error) {
	return got[api.Schedule](ctx, c, toSchedule(http.MethodPost, name, "pause"))
}

// ResumeSchedule has a paused schedule go on.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (api.Schedule, error) {
	return got[api.Schedule](ctx, c, toSchedule(http.MethodPost, name, "resume"))
}

// DeleteSchedule removes a schedule with its history. Its runs stay, and those that go on do so.
func (c *Client) DeleteSchedule(ctx context.Context, name string) error {
	_, err := c.call(ctx, toSchedule(http.MethodDelete, name), nil)
	return err
}

// RunSchedule starts a run of a schedule now, whatever its times are, and returns the run's record
// as it is then. After a lost connection it may have started all the same.
func (c *Client) RunSchedule(ctx context.Context, name string) (api.Record, error) {
	r := toSchedule(http.MethodPost, name, "run")
	r.once = true
	return c.record(ctx, r)
}

// NextTimes returns the next times of a schedule, at most n of 1 to 100.
func (c *Client) NextTimes(ctx context.Context, name string, n int) ([]time.Time, error) {
	return c.times(ctx, toSchedule(http.MethodGet, name, "next"), n)
}

// PreviewTimes returns the next times that a schedule would have, at most n of 1 to 100. What else
// the specification says isn't looked at.
func (c *Client) PreviewTimes(ctx context.Context, spec api.ScheduleSpec, n int) ([]time.Time, error) {
	return c.times(ctx, to(http.MethodPost, "schedules", "preview").with(spec), n)
}

func (c *Client) times(ctx context.Context, r request, n int) ([]time.Time, error) {
	r.query = url.Values{"n": {strconv.Itoa(n)}}
	next, err := got[api.ScheduledTimes](ctx, c, r)
	return next.Times, err
}

// Schedules lists schedules, the newest first. It requests pages of them as they are wanted. After
// an error it yields no more.
func (c *Client) Schedules(ctx context.Context) iter.Seq2[api.Schedule, error] {
	return numbered(ctx, c, to(http.MethodGet, "schedules"), 1000,
		func(p api.SchedulePage) ([]api.Schedule, *int64) { return p.Schedules, p.Next })
}

// Occurrences lists the history of a schedule, the youngest first, as Schedules does.
func (c *Client) Occurrences(ctx context.Context, name string) iter.Seq2[api.Occurrence, error] {
	return numbered(ctx, c, toSchedule(http.MethodGet, name, "occurrences"), 1000,
		func(p api.OccurrencePage) ([]api.Occurrence, *int64) { return p.Occurrences, p.Next })
}
