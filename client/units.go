package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/agent-on-demand/aod/api"
)

// Units lists the server's units, including broken ones (UnitInfo.Problem).
func (c *Client) Units(ctx context.Context) ([]api.Unit, error) {
	list, err := got[struct{ Units []api.Unit }](ctx, c, to(http.MethodGet, "units"))
	return list.Units, err
}

// Unit returns the server's description of one unit, with its contract.
func (c *Client) Unit(ctx context.Context, name string) (api.Unit, error) {
	return got[api.Unit](ctx, c, toUnit(http.MethodGet, name))
}

// DisableUnit switches a unit off: its further runs are refused, until EnableUnit.
func (c *Client) DisableUnit(ctx context.Context, name string) (api.Unit, error) {
	return got[api.Unit](ctx, c, toUnit(http.MethodPost, name, "disable"))
}

// EnableUnit switches a unit on again.
func (c *Client) EnableUnit(ctx context.Context, name string) (api.Unit, error) {
	return got[api.Unit](ctx, c, toUnit(http.MethodPost, name, "enable"))
}

// RemoveUnit removes an uploaded unit. While runs of it go on or wait, the error is a Conflict
// fault that names them; with force they go on, and only new runs don't find it any more.
func (c *Client) RemoveUnit(ctx context.Context, name string, force bool) error {
	r := toUnit(http.MethodDelete, name)
	r.once = true
	if force {
		r.query = url.Values{"force": {"true"}}
	}
	_, err := c.call(ctx, r, nil)
	return err
}

// UnitVersions lists the versions of a unit that the server keeps, the newest first.
func (c *Client) UnitVersions(ctx context.Context, name string) ([]api.UnitVersion, error) {
	list, err := got[struct{ Versions []api.UnitVersion }](ctx, c, toUnit(http.MethodGet, name, "versions"))
	return list.Versions, err
}

// RollbackUnit makes a version that the server keeps the current one of an uploaded unit. It
// returns when its image is there.
func (c *Client) RollbackUnit(ctx context.Context, name, version string) (api.Unit, error) {
	return got[api.Unit](ctx, c, toUnit(http.MethodPost, name, "rollback").with(map[string]string{"version": version}).
		unhurried())
}

// Schema returns the schema.json of a unit unchanged.
func (c *Client) Schema(ctx context.Context, name string) ([]byte, error) {
	return got[json.RawMessage](ctx, c, toUnit(http.MethodGet, name, "schema"))
}

// Card returns what a unit's program says of itself: the model card of an Agentic Unit, the
// tools of an MCP server. The program is asked once; its image may have to be built first.
func (c *Client) Card(ctx context.Context, name string) ([]byte, error) {
	return got[json.RawMessage](ctx, c, toUnit(http.MethodGet, name, "card").unhurried())
}

// PutUnit uploads a capsule's directory as a tar, plain or with gzip, as the unit of that
// name, and reports whether it is a new version. It returns when the image is built. A
// Capsule fault lists every problem of the directory. If reading the archive fails with a
// fault, that fault is the error. PutUnit may go on reading a refused archive for a moment
// after it has returned.
func (c *Client) PutUnit(ctx context.Context, name string, archive io.Reader) (unit api.Unit, created bool, err error) {
	r := toUnit(http.MethodPut, name)
	r.header["Content-Type"] = "application/octet-stream"
	r.body = func() (io.ReadCloser, int64, error) { return io.NopCloser(archive), -1, nil }
	r.once, r.slow = true, true
	status, err := c.call(ctx, r, &unit)
	return unit, err == nil && status == http.StatusCreated, err
}
