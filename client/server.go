package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/agent-on-demand/aod/api"
)

// Reload has the server read its settings again: all of them hold that can, or none.
func (c *Client) Reload(ctx context.Context) (api.Reload, error) {
	r := to(http.MethodPost, "config", "reload").with(struct{}{})
	r.once = true
	return got[api.Reload](ctx, c.conn, r)
}

// Prune removes finished runs with their files, or images that no unit needs. With DryRun it only reports what would
// go.
func (c *Client) Prune(ctx context.Context, opts api.PruneOptions) (api.PruneReport, error) {
	options := struct {
		OlderThan string `json:"older_than,omitempty"`
		MaxBytes  int64  `json:"max_bytes,omitempty"`
		Images    bool   `json:"images,omitempty"`
		DryRun    bool   `json:"dry_run"`
	}{MaxBytes: opts.MaxBytes, Images: opts.Images, DryRun: opts.DryRun}
	if opts.OlderThan > 0 {
		options.OlderThan = opts.OlderThan.String()
	}
	r := to(http.MethodPost, "prune").with(options).unhurried()
	r.once = true
	return got[api.PruneReport](ctx, c.conn, r)
}

// Stats returns the server's figures of the moment: runs by state and unit, rates, slots, disk.
func (c *Client) Stats(ctx context.Context) (api.Stats, error) {
	return got[api.Stats](ctx, c.conn, to(http.MethodGet, "stats"))
}

// Pool returns the server's figures of the containers that wait for runs.
func (c *Client) Pool(ctx context.Context) (api.PoolStats, error) {
	return got[api.PoolStats](ctx, c.conn, to(http.MethodGet, "pool"))
}

// Ready returns nil if the server accepts runs, else the fault that says why it doesn't.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.conn.call(ctx, request{method: http.MethodGet, path: []string{"readyz"}}, nil)
	return err
}

// Models tells of models, and of what runs asked them.
type Models struct{ conn *conn }

// List lists the models that units can ask for.
func (c Models) List(ctx context.Context) ([]api.Model, error) {
	list, err := got[struct{ Models []api.Model }](ctx, c.conn, to(http.MethodGet, "models"))
	return list.Models, err
}

// Calls lists the model calls of a run, in their order.
func (c Models) Calls(ctx context.Context, id string) ([]api.ModelCall, error) {
	list, err := got[struct{ Calls []api.ModelCall }](ctx, c.conn, toRun(http.MethodGet, id, "models"))
	return list.Calls, err
}

// CallPage returns the model calls of a run after the one of a number: limit of them, up to 1000.
func (c Models) CallPage(ctx context.Context, id string, after int64, limit int) (api.ModelCallPage, error) {
	r := toRun(http.MethodGet, id, "models")
	r.query = url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {strconv.Itoa(limit)}}
	return got[api.ModelCallPage](ctx, c.conn, r)
}

// Exchange returns what a run asked with its n-th model call, and the answer. The error
// is a NotFound fault where that isn't kept.
func (c Models) Exchange(ctx context.Context, id string, n int64) (api.ModelExchange, error) {
	return got[api.ModelExchange](ctx, c.conn, toRun(http.MethodGet, id, "models", strconv.FormatInt(n, 10)))
}

// SigninCode asks for an address of the server by which a browser signs in at its page, once and within a minute.
func (c *Client) SigninCode(ctx context.Context) (api.SigninCode, error) {
	r := to(http.MethodPost, "signin")
	r.once = true
	return got[api.SigninCode](ctx, c.conn, r)
}
