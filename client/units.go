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
	var list struct {
		Units []api.Unit `json:"units"`
	}
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "units"}}, &list)
	return list.Units, err
}

// Unit returns the server's description of one unit, with its contract.
func (c *Client) Unit(ctx context.Context, name string) (api.Unit, error) {
	var info api.Unit
	if err := api.CheckUnitName(name); err != nil {
		return info, err
	}
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "units", name}}, &info)
	return info, err
}

// DisableUnit switches a unit off: its further runs are refused, until EnableUnit.
func (c *Client) DisableUnit(ctx context.Context, name string) (api.Unit, error) {
	return c.switchUnit(ctx, name, "disable")
}

// EnableUnit switches a unit on again.
func (c *Client) EnableUnit(ctx context.Context, name string) (api.Unit, error) {
	return c.switchUnit(ctx, name, "enable")
}

func (c *Client) switchUnit(ctx context.Context, name, verb string) (api.Unit, error) {
	var info api.Unit
	if err := api.CheckUnitName(name); err != nil {
		return info, err
	}
	_, err := c.call(ctx, request{method: http.MethodPost, path: []string{"v1", "units", name, verb}}, &info)
	return info, err
}

// RemoveUnit removes an uploaded unit. While runs of it go on or wait, the error is a Conflict
// fault that names them; with force they go on, and only new runs don't find it any more.
func (c *Client) RemoveUnit(ctx context.Context, name string, force bool) error {
	if err := api.CheckUnitName(name); err != nil {
		return err
	}
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	_, err := c.call(ctx, request{method: http.MethodDelete, path: []string{"v1", "units", name}, query: query, once: true}, nil)
	return err
}

// UnitVersions lists the versions of a unit that the server keeps, the newest first.
func (c *Client) UnitVersions(ctx context.Context, name string) ([]api.UnitVersion, error) {
	if err := api.CheckUnitName(name); err != nil {
		return nil, err
	}
	var list struct {
		Versions []api.UnitVersion `json:"versions"`
	}
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "units", name, "versions"}}, &list)
	return list.Versions, err
}

// RollbackUnit makes a version that the server keeps the current one of an uploaded unit. It
// returns when its image is there.
func (c *Client) RollbackUnit(ctx context.Context, name, version string) (api.Unit, error) {
	var info api.Unit
	if err := api.CheckUnitName(name); err != nil {
		return info, err
	}
	body, err := jsonBody(map[string]string{"version": version})
	if err != nil {
		return info, err
	}
	_, err = c.call(ctx, request{
		method: http.MethodPost, path: []string{"v1", "units", name, "rollback"}, body: body, slow: true,
		header: map[string]string{"Content-Type": "application/json"},
	}, &info)
	return info, err
}

// Schema returns the schema.json of a unit unchanged.
func (c *Client) Schema(ctx context.Context, name string) ([]byte, error) {
	if err := api.CheckUnitName(name); err != nil {
		return nil, err
	}
	var schema json.RawMessage
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "units", name, "schema"}}, &schema)
	return schema, err
}

// Card returns what a unit's program says of itself: the model card of an Agentic Unit, the
// tools of an MCP server. The program is asked once; its image may have to be built first.
func (c *Client) Card(ctx context.Context, name string) ([]byte, error) {
	if err := api.CheckUnitName(name); err != nil {
		return nil, err
	}
	var card json.RawMessage
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "units", name, "card"}, slow: true}, &card)
	return card, err
}

// PutUnit uploads a capsule's directory as a tar, plain or with gzip, as the unit of that
// name, and reports whether it is a new version. It returns when the image is built. A
// Capsule fault lists every problem of the directory. If reading the archive fails with a
// fault, that fault is the error. PutUnit may go on reading a refused archive for a moment
// after it has returned.
func (c *Client) PutUnit(ctx context.Context, name string, archive io.Reader) (api.Unit, bool, error) {
	var info api.Unit
	if err := api.CheckUnitName(name); err != nil {
		return info, false, err
	}
	status, err := c.call(ctx, request{
		method: http.MethodPut, path: []string{"v1", "units", name},
		header: map[string]string{"Content-Type": "application/octet-stream"},
		body:   func() (io.ReadCloser, int64, error) { return io.NopCloser(archive), -1, nil },
		once:   true, slow: true,
	}, &info)
	if err != nil {
		return info, false, err
	}
	return info, status == http.StatusCreated, nil
}
