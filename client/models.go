package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/agent-on-demand/aod/api"
)

// Models lists the models that units can ask for.
func (c *Client) Models(ctx context.Context) ([]api.Model, error) {
	list, err := got[struct{ Models []api.Model }](ctx, c, to(http.MethodGet, "models"))
	return list.Models, err
}

// ModelCalls lists the model calls of a run, in their order.
func (c *Client) ModelCalls(ctx context.Context, id string) ([]api.ModelCall, error) {
	list, err := got[struct{ Calls []api.ModelCall }](ctx, c, toRun(http.MethodGet, id, "models"))
	return list.Calls, err
}

// ModelExchange returns what a run asked with its n-th model call, and the answer. The error
// is a NotFound fault where that isn't kept.
func (c *Client) ModelExchange(ctx context.Context, id string, n int64) (api.ModelExchange, error) {
	return got[api.ModelExchange](ctx, c, toRun(http.MethodGet, id, "models", strconv.FormatInt(n, 10)))
}
