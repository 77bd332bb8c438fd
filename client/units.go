package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

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
