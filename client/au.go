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
	Args    []string      // as they would follow the program's name
	Timeout time.Duration // 0: the unit's, or the server's
	// Key makes the call idempotent, as Submission's does. It isn't sent a second time by
	// itself: its stdin is gone then.
	Key string
}

// AUResult is what an Agentic Unit printed.
type AUResult struct {
	Run    string          // the id
	Output json.RawMessage // an object or an array, as the unit printed it
}

// RunAU runs an Agentic Unit and returns at its end, however long that takes. The error is
// an Input fault for what the unit doesn't take, Capsule for a unit that failed; RunOf says
// which run it is about. When ctx ends before, the run goes on.
func (c *Client) RunAU(ctx context.Context, call AUCall) (AUResult, error) {
	if err := api.CheckUnitName(call.Unit); err != nil {
		return AUResult{}, err
	}
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
	r := request{
		method: http.MethodPost, path: []string{"v1", "au", call.Unit}, query: url.Values{},
		header: map[string]string{"Content-Type": "application/octet-stream", "Idempotency-Key": keyOr(call.Key)},
		slow:   true,
	}
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

// runError says which run a fault is about.
type runError struct{ id string }

func (e *runError) Error() string { return "run " + e.id }

// RunOf returns the id of the run that a server's refusal is about; "" where it names none.
func RunOf(err error) string {
	var about *runError
	if errors.As(err, &about) {
		return about.id
	}
	return ""
}
