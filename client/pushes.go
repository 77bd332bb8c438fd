package client

import (
	"context"
	"net/http"

	"github.com/agent-on-demand/aod/api"
)

// Pushes lists the receivers that are told of a run, the oldest first.
func (c *Client) Pushes(ctx context.Context, id string) ([]api.Push, error) {
	list, err := got[struct{ Pushes []api.Push }](ctx, c, toRun(http.MethodGet, id, "pushes"))
	return list.Pushes, err
}
