package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/agent-on-demand/aod/api"
)

// Audit lists who did what at the server, and who was refused it, the newest first. It requests pages as they are
// wanted. After an error it yields no more.
func (c *Client) Audit(ctx context.Context, f api.AuditFilter) iter.Seq2[api.AuditEntry, error] {
	r := to(http.MethodGet, "audit")
	r.query = url.Values{}
	for name, value := range map[string]string{"by": f.By, "object": f.Object} {
		if value != "" {
			r.query.Set(name, value)
		}
	}
	if !f.Since.IsZero() {
		r.query.Set("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	return numbered(ctx, c.conn, r, 1000, func(p api.AuditPage) ([]api.AuditEntry, *int64) { return p.Entries, p.Next })
}
