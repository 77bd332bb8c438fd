package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// idRule is the form of an id in a path. Only the server knows which ids exist.
var idRule = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z_-]{0,127}$`)

func checkID(id string) error {
	if idRule().MatchString(id) {
		return nil
	}
	return fault.New(fault.Input, "%q is not the id of a run", id).WithHint("`aod ps -a` lists the runs with their ids")
}

// Run returns the record of a run as it is now.
func (c *Client) Run(ctx context.Context, id string) (api.Record, error) {
	return c.record(ctx, toRun(http.MethodGet, id))
}

// Output returns the result of a run that succeeded: a JSON object. A Conflict fault says
// that the run goes on, NotFound that it has no result.
func (c *Client) Output(ctx context.Context, id string) (json.RawMessage, error) {
	return got[json.RawMessage](ctx, c, toRun(http.MethodGet, id, "output"))
}

// Cancel requests the end of a run and doesn't wait for it. The reason may be empty. A
// Conflict fault says that the run has ended already.
func (c *Client) Cancel(ctx context.Context, id, reason string) (api.Record, error) {
	return c.record(ctx, toRun(http.MethodPost, id, "cancel").with(struct {
		Reason string `json:"reason,omitempty"`
	}{reason}))
}

// Runs lists the runs that match the filter, newest first. It requests pages of
// Filter.Limit runs as they are needed, until there are no more. It ends after an error.
func (c *Client) Runs(ctx context.Context, f api.Filter) iter.Seq2[api.Summary, error] {
	r := to(http.MethodGet, "runs")
	r.query = queryOf(f)
	return pages(ctx, c, r, "cursor", func(p api.Page) ([]api.Summary, *string) { return p.Runs, p.Next })
}

// queryOf encodes a filter. It omits zero fields.
func queryOf(f api.Filter) url.Values {
	q := url.Values{}
	set := func(key, value string) {
		if value != "" {
			q.Set(key, value)
		}
	}
	set("unit", f.Unit)
	set("parent", f.Parent)
	set("session", f.Session)
	set("context", f.Context)
	set("schedule", f.Schedule)
	set("cursor", f.Cursor)
	set("since", timeText(f.Since))
	set("until", timeText(f.Until))
	var states []string
	for _, s := range f.States {
		states = append(states, string(s))
	}
	set("state", strings.Join(states, ","))
	for key, value := range f.Metadata {
		q.Add("metadata", key+":"+value)
	}
	slices.Sort(q["metadata"])
	if f.Active {
		q.Set("active", "true")
	}
	if f.Waiting {
		q.Set("waiting", "true")
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// record sends a request whose answer is a run's record.
func (c *Client) record(ctx context.Context, r request) (api.Record, error) {
	record, err := got[api.Record](ctx, c, r)
	if err != nil {
		return api.Record{}, err
	}
	if err := checkID(record.ID); err != nil {
		return api.Record{}, c.strange(err)
	}
	return record, nil
}

// Pushes lists the receivers that are told of a run, the oldest first.
func (c *Client) Pushes(ctx context.Context, id string) ([]api.Push, error) {
	list, err := got[struct{ Pushes []api.Push }](ctx, c, toRun(http.MethodGet, id, "pushes"))
	return list.Pushes, err
}
