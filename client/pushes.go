package client

import (
	"context"
	"net/http"

	"github.com/agent-on-demand/aod/api"
)

// Pushes lists the receivers that are told of a run, the oldest first.
func (c *Client) Pushes(ctx context.Context, id string) ([]api.Push, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	var list struct {
		Pushes []api.Push `json:"pushes"`
	}
	_, err := c.call(ctx, request{method: http.MethodGet, path: []string{"v1", "runs", id, "pushes"}}, &list)
	return list.Pushes, err
}
