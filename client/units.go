package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// Units tells of units, and changes those that were uploaded.
type Units struct{ conn *conn }

// List lists the server's units, including broken ones (Unit.Problem).
func (c Units) List(ctx context.Context) ([]api.Unit, error) {
	list, err := got[struct{ Units []api.Unit }](ctx, c.conn, to(http.MethodGet, "units"))
	return list.Units, err
}

// Get returns the server's description of one unit, with its contract.
func (c Units) Get(ctx context.Context, name string) (api.Unit, error) {
	return got[api.Unit](ctx, c.conn, toUnit(http.MethodGet, name))
}

// Disable switches a unit off: its further runs are refused, until Enable.
func (c Units) Disable(ctx context.Context, name string) (api.Unit, error) {
	return got[api.Unit](ctx, c.conn, toUnit(http.MethodPost, name, "disable"))
}

// Enable switches a unit on again.
func (c Units) Enable(ctx context.Context, name string) (api.Unit, error) {
	return got[api.Unit](ctx, c.conn, toUnit(http.MethodPost, name, "enable"))
}

// Remove removes an uploaded unit. While runs of it go on or wait, the error is a Conflict
// fault that names them; with force they go on, and only new runs don't find it any more.
func (c Units) Remove(ctx context.Context, name string, force bool) error {
	r := toUnit(http.MethodDelete, name)
	r.once = true
	if force {
		r.query = url.Values{"force": {"true"}}
	}
	_, err := c.conn.call(ctx, r, nil)
	return err
}

// Versions lists the versions of a unit that the server keeps, the newest first.
func (c Units) Versions(ctx context.Context, name string) ([]api.UnitVersion, error) {
	list, err := got[struct{ Versions []api.UnitVersion }](ctx, c.conn, toUnit(http.MethodGet, name, "versions"))
	return list.Versions, err
}

// Rollback makes a version that the server keeps the current one of an uploaded unit. It
// returns when its image is there.
func (c Units) Rollback(ctx context.Context, name, version string) (api.Unit, error) {
	r := toUnit(http.MethodPost, name, "rollback").with(map[string]string{"version": version})
	return got[api.Unit](ctx, c.conn, r.unhurried())
}

// Schema returns the schema.json of a unit unchanged.
func (c Units) Schema(ctx context.Context, name string) ([]byte, error) {
	return got[json.RawMessage](ctx, c.conn, toUnit(http.MethodGet, name, "schema"))
}

// Card returns what a unit's program says of itself: the model card of an Agentic Unit, the
// tools of an MCP server. The program is asked once; its image may have to be built first.
func (c Units) Card(ctx context.Context, name string) ([]byte, error) {
	return got[json.RawMessage](ctx, c.conn, toUnit(http.MethodGet, name, "card").unhurried())
}

// Put uploads a capsule's directory as a tar, plain or with gzip, as the unit of that
// name, and reports whether it is a new version. It returns when the image is built. A
// Capsule fault lists every problem of the directory. If reading the archive fails with a
// fault, that fault is the error. Put may go on reading a refused archive for a moment
// after it has returned.
func (c Units) Put(ctx context.Context, name string, archive io.Reader) (unit api.Unit, created bool, err error) {
	return c.put(ctx, toUnit(http.MethodPut, name), archive)
}

// Add is Put for a unit that must be new: where another upload has the name, that one stays as it is, and the error
// is an Exists fault. One of the same content is no other one.
func (c Units) Add(ctx context.Context, name string, archive io.Reader) (unit api.Unit, created bool, err error) {
	r := toUnit(http.MethodPut, name)
	r.header["If-None-Match"] = "*"
	return c.put(ctx, r, archive)
}

func (c Units) put(ctx context.Context, r request, archive io.Reader) (unit api.Unit, created bool, err error) {
	r.header["Content-Type"] = "application/octet-stream"
	r.body = func() (io.ReadCloser, int64, error) { return io.NopCloser(archive), -1, nil }
	r.once, r.slow = true, true
	status, err := c.conn.call(ctx, r, &unit)
	return unit, err == nil && status == http.StatusCreated, err
}

// AUCall asks for one run of an Agentic Unit.
type AUCall struct {
	Unit    string
	Stdin   io.Reader     // sent as it is read; nil isn't an input
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
func (c Units) RunAU(ctx context.Context, call AUCall) (AUResult, error) {
	response, err := c.conn.ask(ctx, call.request())
	if err != nil {
		return AUResult{}, err
	}
	defer response.Body.Close()
	result := AUResult{Run: response.Header.Get("AOD-Run")}
	if err := checkID(result.Run); err != nil {
		return AUResult{}, c.conn.strange(err)
	}
	return result, c.conn.decode(ctx, response.Body, &result.Output)
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
