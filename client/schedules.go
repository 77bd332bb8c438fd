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
	"github.com/agent-on-demand/aod/fault"
)

// PutSchedule makes a schedule, or gives one another specification, and reports whether it is new.
// Each of its runs gets the files, which are sent as those of a Submission; without files it has
// none, whatever it had before.
func (c *Client) PutSchedule(ctx context.Context, name string, spec api.ScheduleSpec, files []InputFile) (schedule api.Schedule, created bool, err error) {
	if err := api.CheckScheduleName(name); err != nil {
		return schedule, false, err
	}
	r := request{method: http.MethodPut, path: []string{"v1", "schedules", name}, header: map[string]string{}, slow: len(files) > 0}
	if len(files) > 0 {
		r.body, r.header["Content-Type"], err = scheduleForm(spec, files)
	} else {
		r.header["Content-Type"] = "application/json"
		r.body, err = jsonBody(spec)
	}
	if err != nil {
		return schedule, false, err
	}
	status, err := c.call(ctx, r, &schedule)
	return schedule, err == nil && status == http.StatusCreated, err
}

func scheduleForm(spec api.ScheduleSpec, files []InputFile) (open formOpener, contentType string, err error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, "", fault.Wrap(fault.Input, err, "the schedule can't be written as JSON")
	}
	return formOf([]field{{"schedule", string(raw)}}, files, nil)
}

// Schedule returns a schedule as it is now, or a NotFound fault.
func (c *Client) Schedule(ctx context.Context, name string) (api.Schedule, error) {
	return c.schedule(ctx, http.MethodGet, name)
}

// PauseSchedule pauses a schedule: it has no occurrences until ResumeSchedule. Its runs go on.
func (c *Client) PauseSchedule(ctx context.Context, name string) (api.Schedule, error) {
	return c.schedule(ctx, http.MethodPost, name, "pause")
}

// ResumeSchedule has a paused schedule go on.
func (c *Client) ResumeSchedule(ctx context.Context, name string) (api.Schedule, error) {
	return c.schedule(ctx, http.MethodPost, name, "resume")
}

func (c *Client) schedule(ctx context.Context, method, name string, verb ...string) (schedule api.Schedule, err error) {
	if err := api.CheckScheduleName(name); err != nil {
		return schedule, err
	}
	_, err = c.call(ctx, request{method: method, path: append([]string{"v1", "schedules", name}, verb...)}, &schedule)
	return schedule, err
}

// DeleteSchedule removes a schedule with its history. Its runs stay, and those that go on do so.
func (c *Client) DeleteSchedule(ctx context.Context, name string) error {
	if err := api.CheckScheduleName(name); err != nil {
		return err
	}
	_, err := c.call(ctx, request{method: http.MethodDelete, path: []string{"v1", "schedules", name}}, nil)
	return err
}

// RunSchedule starts a run of a schedule now, whatever its times are, and returns the run's record
// as it is then. After a lost connection it may have started all the same.
func (c *Client) RunSchedule(ctx context.Context, name string) (api.Record, error) {
	if err := api.CheckScheduleName(name); err != nil {
		return api.Record{}, err
	}
	return c.record(ctx, request{method: http.MethodPost, path: []string{"v1", "schedules", name, "run"}, once: true})
}

// NextTimes returns the next times of a schedule, at most n of 1 to 100.
func (c *Client) NextTimes(ctx context.Context, name string, n int) ([]time.Time, error) {
	if err := api.CheckScheduleName(name); err != nil {
		return nil, err
	}
	return c.times(ctx, request{method: http.MethodGet, path: []string{"v1", "schedules", name, "next"}}, n)
}

// PreviewTimes returns the next times that a schedule would have, at most n of 1 to 100. What else
// the specification says isn't looked at.
func (c *Client) PreviewTimes(ctx context.Context, spec api.ScheduleSpec, n int) ([]time.Time, error) {
	body, err := jsonBody(spec)
	if err != nil {
		return nil, err
	}
	return c.times(ctx, request{
		method: http.MethodPost, path: []string{"v1", "schedules", "preview"}, body: body,
		header: map[string]string{"Content-Type": "application/json"},
	}, n)
}

func (c *Client) times(ctx context.Context, r request, n int) ([]time.Time, error) {
	var next api.ScheduledTimes
	r.query = url.Values{"n": {strconv.Itoa(n)}}
	_, err := c.call(ctx, r, &next)
	return next.Times, err
}

// Schedules lists schedules, the newest first. It requests pages of them as they are wanted. After
// an error it yields no more.
func (c *Client) Schedules(ctx context.Context) iter.Seq2[api.Schedule, error] {
	return pages(func(after int64) ([]api.Schedule, *int64, error) {
		var page api.SchedulePage
		_, err := c.call(ctx, pageOf(after, nil, "v1", "schedules"), &page)
		return page.Schedules, page.Next, err
	})
}

// Occurrences lists the history of a schedule, the youngest first, as Schedules does.
func (c *Client) Occurrences(ctx context.Context, name string) iter.Seq2[api.Occurrence, error] {
	return pages(func(after int64) ([]api.Occurrence, *int64, error) {
		if err := api.CheckScheduleName(name); err != nil {
			return nil, nil, err
		}
		var page api.OccurrencePage
		_, err := c.call(ctx, pageOf(after, nil, "v1", "schedules", name, "occurrences"), &page)
		return page.Occurrences, page.Next, err
	})
}

// pages yields what is in the pages of a list that is read from its end: each next is lower.
func pages[T any](read func(after int64) ([]T, *int64, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for after := int64(0); ; {
			items, next, err := read(after)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == nil || after > 0 && *next >= after {
				return
			}
			after = *next
		}
	}
}
