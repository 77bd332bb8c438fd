package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// AUCall asks for one run of an Agentic Unit.
type AUCall struct {
	Unit    string
	Stdin   io.Reader     // sent as it is read; nil is no input
	Prompt  string        // "" is none
	Args    []string      // without the program's name
	Timeout time.Duration // 0: the unit's own, or else the server's
	// Key makes the call idempotent, as Submission's does. The client doesn't repeat the
	// call by itself: its stdin has been read by then.
	Key string
}

// AUResult is the output of an Agentic Unit.
type AUResult struct {
	Run    string          // the id
	Output json.RawMessage // an object or an array, as the unit printed it
}

// RunAU runs an Agentic Unit and returns at its end, however long that takes. The error is
// an Input fault for input that the unit refuses, Capsule for a unit that failed; RunOf
// returns the id of its run. If ctx ends first, the run goes on.
func (c *Client) RunAU(ctx context.Context, call AUCall) (AUResult, error) {
	response, err := c.ask(ctx, call.request())
	if err != nil {
		return AUResult{}, err
	}
	defer response.Body.Close()
	result := AUResult{Run: response.Header.Get("AOD-Run")}
	if err := checkID(result.Run); err != nil {
		return AUResult{}, c.strange(err)
	}
	return result, c.decode(ctx, response.Body, &result.Output)
}

func (call AUCall) request() request {
	r := to(http.MethodPost, "au", call.Unit)
	r.err = api.CheckUnitName(call.Unit)
	r.query, r.slow = url.Values{}, true
	r.header["Content-Type"], r.header["Idempotency-Key"] = "application/octet-stream", keyOr(call.Key)
	if call.Prompt != "" {
		r.query.Set("prompt", call.Prompt)
	}
	if call.Timeout > 0 {
		r.query.Set("timeout", call.Timeout.String())
	}
	r.query["arg"] = call.Args
	if call.Stdin != nil {
		r.body = func() (io.ReadCloser, int64, error) { return io.NopCloser(call.Stdin), -1, nil }
	}
	return r
}

// runError is a fault with the id of its run.
type runError struct{ id string }

func (e *runError) Error() string { return "run " + e.id }

// RunOf returns the id of the run that a server's refusal is about, or "" if it names none.
func RunOf(err error) string {
	var about *runError
	if errors.As(err, &about) {
		return about.id
	}
	return ""
}
