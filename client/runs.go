package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// Submission asks for one run of a unit.
type Submission struct {
	Unit    string          // "" with a Session: its own
	Session string          // the run is its next turn; "" for none
	Input   json.RawMessage // a JSON object; nil is {}
	// Files are read while they are sent, one after the other. They must be regular files
	// and must not change meanwhile.
	Files []InputFile
	// Project writes the project that the run works on, as a tar, maybe more than once; nil: none.
	Project func(io.Writer) error
	Timeout time.Duration // 0: the unit's own, or else the server's
	// Metadata describes the run, to find it by: see api.CheckMetadata.
	Metadata map[string]string
	// Unattended says that nobody answers what the run asks: its questions are denied at once.
	Unattended bool
	// Context is the conversation or group that the run is counted to: see api.CheckContext.
	Context string
	// Env and Dir are of the program of a wrapped agent; see api.Submission.
	Env map[string]string
	Dir string
	// Key makes the submission idempotent for as long as the server remembers it: a
	// second one with the same key joins the run of the first. "" makes one for this
	// call, which may send the submission more than once.
	Key string
	// TraceParent is the caller's W3C trace context; "" for none.
	TraceParent string
	// Wait is how long the server waits for the run's end before it answers, up to half a
	// minute; 0: not at all.
	Wait time.Duration
}

// InputFile is a local file for a field of the input.
type InputFile struct {
	Field string // dotted path; a list field takes any number of files
	Path  string // on this machine
}

// Runs starts runs and tells of them.
type Runs struct{ conn *conn }

// Submit starts a run and returns its record as it is then. It waits for the server to
// accept the run, and for the run's end only as long as Wait says: see Events. If ctx ends before
// Submit returns, the run may have started all the same.
func (c Runs) Submit(ctx context.Context, s Submission) (api.Record, error) {
	r := to(http.MethodPost, "runs")
	r.header["Idempotency-Key"] = keyOr(s.Key)
	if s.Wait > 0 {
		r.query = url.Values{"wait": {s.Wait.String()}}
	}
	if s.TraceParent != "" {
		r.header["Traceparent"] = s.TraceParent
	}
	if len(s.Files) > 0 || s.Project != nil {
		return c.conn.record(ctx, r.withForm(s.texts(), s.Files, s.Project))
	}
	return c.conn.record(ctx, r.with(s.json()))
}

// Rerun starts a run again, with the same input and files, and returns the new run's record.
// A flow may begin with the steps of the old run; see api.Rerun.
func (c Runs) Rerun(ctx context.Context, id string, from api.Rerun) (api.Record, error) {
	r := toRun(http.MethodPost, id, "rerun")
	r.header["Idempotency-Key"] = keyOr("")
	if from.From != "" {
		r = r.with(from)
	}
	return c.conn.record(ctx, r)
}

// keyOr makes a key if there is none, so that a retry is safe.
func keyOr(key string) string {
	if key == "" {
		return rand.Text()
	}
	return key
}

func (s Submission) json() api.Submission {
	document := api.Submission{
		Unit: s.Unit, Session: s.Session, Input: s.Input, Metadata: s.Metadata,
		Unattended: s.Unattended, Context: s.Context, Env: s.Env, Dir: s.Dir,
	}
	if len(s.Input) == 0 {
		document.Input = json.RawMessage("{}")
	}
	if s.Timeout > 0 {
		document.Timeout = s.Timeout.String()
	}
	return document
}

// Get returns the record of a run as it is now.
func (c Runs) Get(ctx context.Context, id string) (api.Record, error) {
	return c.conn.record(ctx, toRun(http.MethodGet, id))
}

// Tree returns a run with all runs below it.
func (c Runs) Tree(ctx context.Context, id string) (api.Tree, error) {
	return got[api.Tree](ctx, c.conn, toRun(http.MethodGet, id, "tree"))
}

// List lists the runs that match the filter, newest first. It requests pages of
// Filter.Limit runs as they are needed, until there are no more. It ends after an error.
func (c Runs) List(ctx context.Context, f api.Filter) iter.Seq2[api.Summary, error] {
	r := to(http.MethodGet, "runs")
	r.query = queryOf(f)
	return pages(ctx, c.conn, r, "cursor", func(p api.Page) ([]api.Summary, *string) { return p.Runs, p.Next })
}

// Facet counts the newest runs that match the filter, by state, outcome, error_kind, unit or kind. Its Limit has no
// meaning.
func (c Runs) Facet(ctx context.Context, f api.Filter, by string) (api.Facet, error) {
	r := to(http.MethodGet, "runs", "counts")
	r.query = queryOf(f)
	r.query.Set("by", by)
	return got[api.Facet](ctx, c.conn, r)
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
	set("made_by", f.By)
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
	if f.Roots {
		q.Set("roots", "true")
	}
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

// Output returns the result of a run that succeeded: a JSON object. A Conflict fault says
// that the run goes on, NotFound that it has no result.
func (c Runs) Output(ctx context.Context, id string) (json.RawMessage, error) {
	return got[json.RawMessage](ctx, c.conn, toRun(http.MethodGet, id, "output"))
}

// Remove removes a run that ended with all that it called, for good.
func (c Runs) Remove(ctx context.Context, id string) (api.RemovedRun, error) {
	r := toRun(http.MethodDelete, id).unhurried()
	r.once = true
	return got[api.RemovedRun](ctx, c.conn, r)
}

// Cancel requests the end of a run and doesn't wait for it. The reason may be empty. A
// Conflict fault says that the run has ended already.
func (c Runs) Cancel(ctx context.Context, id, reason string) (api.Record, error) {
	return c.conn.record(ctx, toRun(http.MethodPost, id, "cancel").with(struct {
		Reason string `json:"reason,omitempty"`
	}{reason}))
}

// Pushes lists the receivers that are told of a run, the oldest first.
func (c Runs) Pushes(ctx context.Context, id string) ([]api.Push, error) {
	list, err := got[struct{ Pushes []api.Push }](ctx, c.conn, toRun(http.MethodGet, id, "pushes"))
	return list.Pushes, err
}

// Say gives a run that goes on a message, of which its program hears, and returns the message as the
// server has it. A Conflict fault says that the run is over.
func (c Runs) Say(ctx context.Context, id string, s api.Saying) (api.MessageEvent, error) {
	r := toRun(http.MethodPost, id, "messages").with(s)
	r.header["Idempotency-Key"] = keyOr("")
	return got[api.MessageEvent](ctx, c.conn, r)
}

// Messages lists the messages of a run in the order in which they came. It requests pages of them as
// they are wanted. After an error it yields no more.
func (c Runs) Messages(ctx context.Context, id string) iter.Seq2[api.HeardMessage, error] {
	return numbered(ctx, c.conn, toRun(http.MethodGet, id, "messages"), 100,
		func(p api.MessagePage) ([]api.HeardMessage, *int64) { return p.Messages, p.Next })
}
