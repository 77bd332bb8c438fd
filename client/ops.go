package client

import (
	"context"
	"net/http"

	"github.com/agent-on-demand/aod/api"
)

// Prune removes finished runs with their files, or images that no unit needs. With DryRun it only reports what would go.
func (c *Client) Prune(ctx context.Context, opts api.PruneOptions) (api.PruneReport, error) {
	var report api.PruneReport
	options := struct {
		OlderThan string `json:"older_than,omitempty"`
		MaxBytes  int64  `json:"max_bytes,omitempty"`
		Images    bool   `json:"images,omitempty"`
		DryRun    bool   `json:"dry_run"`
	}{MaxBytes: opts.MaxBytes, Images: opts.Images, DryRun: opts.DryRun}
	if opts.OlderThan > 0 {
		options.OlderThan = opts.OlderThan.String()
	}
	body, err := jsonBody(options)
	if err != nil {
		return report, err
	}
	_, err = c.call(ctx, request{
		method: http.MethodPost, path: []string{"v1", "prune"}, body: body, once: true, slow: true,
		header: map[string]string{"Content-Type": "application/json"},
	}, &report)
	return report, err
}

// Stats returns the server's figures of the moment: runs by state and unit, rates, slots, disk.
func (c *Client) Stats(ctx context.Context) (api.Stats, error) {
	var stats api.Stats
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "stats"}}, &stats)
	return stats, err
}

// Pool returns the server's figures of the containers that wait for runs.
func (c *Client) Pool(ctx context.Context) (api.PoolStats, error) {
	var stats api.PoolStats
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "pool"}}, &stats)
	return stats, err
}

// Ready returns nil if the server accepts runs, else the fault that says why it doesn't.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"readyz"}}, nil)
	return err
}
