package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// Usage returns what was used, grouped and sorted as the filter says.
func (c *Client) Usage(ctx context.Context, f api.UsageFilter) ([]api.UsageSum, error) {
	r := to(http.MethodGet, "usage")
	r.query = url.Values{}
	if len(f.By) > 0 {
		r.query.Set("by", strings.Join(f.By, ","))
	}
	for name, day := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !day.IsZero() {
			r.query.Set(name, day.UTC().Format(time.RFC3339))
		}
	}
	answer, err := got[struct {
		Usage []api.UsageSum `json:"usage"`
	}](ctx, c.conn, r)
	return answer.Usage, err
}

// Quotas returns the bounds of the client's teams and of its token, with what is left of each.
func (c *Client) Quotas(ctx context.Context) ([]api.Quota, error) {
	answer, err := got[struct {
		Quotas []api.Quota `json:"quotas"`
	}](ctx, c.conn, to(http.MethodGet, "quotas"))
	return answer.Quotas, err
}
