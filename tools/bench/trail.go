package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// trail remembers the records of runs that called another one, to say where the time went.
type trail struct {
	server  *server
	work    string
	last    api.Record // whose callee is to be looked up
	callers []api.Record
	callees []api.Record
}

// follow waits for the last caller to rest and remembers it and its callee.
func (t *trail) follow(ctx context.Context) error {
	caller, err := t.server.rest(ctx, t.last.ID)
	if err != nil {
		return err
	}
	if len(caller.Calls) != 1 {
		return fmt.Errorf("run %s made %d calls", caller.ID, len(caller.Calls))
	}
	callee, err := t.server.rest(ctx, caller.Calls[0].ID)
	t.callers, t.callees = append(t.callers, caller), append(t.callees, callee)
	return err
}

// spans are the parts of a run's time, in their order.
var spans = []struct {
	name string
	of   func(api.Timings) float64
}{
	{"queue", func(t api.Timings) float64 { return t.Queue }},
	{"build", func(t api.Timings) float64 { return t.Build }},
	{"create", func(t api.Timings) float64 { return t.Create }},
	{"start", func(t api.Timings) float64 { return t.Start }},
	{"run", func(t api.Timings) float64 { return t.Run }},
	{"collect", func(t api.Timings) float64 { return t.Collect }},
	{"total", func(t api.Timings) float64 { return t.Total }},
}

// way asks for a run that calls another one.
func (t *trail) way(body string) *way {
	return &way{
		name: t.work,
		do: func(ctx context.Context) (err error) {
			t.last, err = t.server.submit(ctx, body, waiting, http.StatusOK)
			return err
		},
		settle: t.follow,
	}
}

// String lists the medians, without the first run's, which warmed caches.
func (t *trail) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, medians of the records in ms:\n\n", t.work)
	t.write(&text, "the caller", t.callers[1:])
	t.write(&text, "the callee", t.callees[1:])
	fmt.Fprintf(&text,
		"- the call was accepted %s after the caller's program began, and the callee ended %s before the caller",
		milliseconds(t.median(beforeCall)), milliseconds(t.median(afterCall)))
	return text.String()
}

func (t *trail) write(text *strings.Builder, who string, records []api.Record) {
	var parts []string
	for _, span := range spans {
		var times []time.Duration
		for _, r := range records {
			times = append(times, inMilliseconds(span.of(r.Timings)))
		}
		parts = append(parts, span.name+" "+milliseconds(series{times: times}.p50()))
	}
	fmt.Fprintf(text, "- %s: %s\n", who, strings.Join(parts, ", "))
}

func (t *trail) median(between func(caller, callee api.Record) time.Duration) time.Duration {
	var times []time.Duration
	for i := 1; i < len(t.callers); i++ {
		times = append(times, between(t.callers[i], t.callees[i]))
	}
	return series{times: times}.p50()
}

// beforeCall is how long the caller's program ran until AOD had taken its call and files.
func beforeCall(caller, callee api.Record) time.Duration {
	return callee.CreatedAt.Sub(*caller.StartedAt)
}

// afterCall is how much later its run ended than the callee's.
func afterCall(caller, callee api.Record) time.Duration {
	return caller.FinishedAt.Sub(*callee.FinishedAt)
}

func inMilliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
