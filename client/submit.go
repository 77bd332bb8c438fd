package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
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

// Submit starts a run and returns its record as it is then. It waits for the server to
// accept the run, and for the run's end only as long as Wait says: see Events. If ctx ends before Submit returns, the
// run may have started all the same.
func (c *Client) Submit(ctx context.Context, s Submission) (api.Record, error) {
	r := to(http.MethodPost, "runs")
	r.header["Idempotency-Key"] = keyOr(s.Key)
	if s.Wait > 0 {
		r.query = url.Values{"wait": {s.Wait.String()}}
	}
	if s.TraceParent != "" {
		r.header["Traceparent"] = s.TraceParent
	}
	if len(s.Files) > 0 || s.Project != nil {
		return c.record(ctx, r.withForm(s.texts(), s.Files, s.Project))
	}
	return c.record(ctx, r.with(s.json()))
}

// Rerun starts a run again, with the same input and files, and returns the new run's record.
// A flow may begin with the steps of the old run; see api.Rerun.
func (c *Client) Rerun(ctx context.Context, id string, from api.Rerun) (api.Record, error) {
	r := toRun(http.MethodPost, id, "rerun")
	r.header["Idempotency-Key"] = keyOr("")
	if from.From != "" {
		r = r.with(from)
	}
	return c.record(ctx, r)
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
