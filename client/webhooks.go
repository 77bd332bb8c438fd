package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/agent-on-demand/aod/api"
)

// Webhooks has receivers told of runs.
type Webhooks struct{ conn *conn }

// Add makes a webhook. What it returns has the secret by which requests are signed: it can't be read again.
func (c Webhooks) Add(ctx context.Context, asked api.WebhookRequest) (api.Webhook, error) {
	r := to(http.MethodPost, "webhooks").with(asked)
	r.once = true
	return got[api.Webhook](ctx, c.conn, r)
}

// List lists webhooks, the newest first, as Schedules.List does.
func (c Webhooks) List(ctx context.Context) iter.Seq2[api.Webhook, error] {
	return numbered(ctx, c.conn, to(http.MethodGet, "webhooks"), 1000,
		func(p api.WebhookPage) ([]api.Webhook, *int64) { return p.Webhooks, p.Next })
}

// Get returns a webhook as it is now, or a NotFound fault.
func (c Webhooks) Get(ctx context.Context, id string) (api.Webhook, error) {
	return got[api.Webhook](ctx, c.conn, toWebhook(http.MethodGet, id))
}

// Delete removes a webhook: its receiver is told nothing more.
func (c Webhooks) Delete(ctx context.Context, id string) error {
	_, err := c.conn.call(ctx, toWebhook(http.MethodDelete, id), nil)
	return err
}

// Rotate gives a webhook another secret, which what it returns has: it can't be read again.
func (c Webhooks) Rotate(ctx context.Context, id string, asked api.WebhookRotation) (api.Webhook, error) {
	r := toWebhook(http.MethodPost, id, "rotate").with(asked)
	r.once = true
	return got[api.Webhook](ctx, c.conn, r)
}

// Test has the server make a request to the receiver now, and returns what became of it.
func (c Webhooks) Test(ctx context.Context, id string) (api.WebhookTest, error) {
	r := toWebhook(http.MethodPost, id, "test").unhurried()
	r.once = true
	return got[api.WebhookTest](ctx, c.conn, r)
}
