package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/agent-on-demand/aod/api"
)

// Models lists the models that units can ask for.
func (c *Client) Models(ctx context.Context) ([]api.Model, error) {
	var list struct {
		Models []api.Model `json:"models"`
	}
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "models"}}, &list)
	return list.Models, err
}

// ModelCalls lists the model calls of a run, in their order.
func (c *Client) ModelCalls(ctx context.Context, id string) ([]api.ModelCall, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	var list struct {
		Calls []api.ModelCall `json:"calls"`
	}
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "runs", id, "models"}}, &list)
	return list.Calls, err
}

// ModelExchange returns what a run asked with its n-th model call, and the answer. The error
// is a NotFound fault where that isn't kept.
func (c *Client) ModelExchange(ctx context.Context, id string, n int64) (api.ModelExchange, error) {
	var exchange api.ModelExchange
	if err := checkID(id); err != nil {
		return exchange, err
	}
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "runs", id, "models", strconv.FormatInt(n, 10)}}, &exchange)
	return exchange, err
}
