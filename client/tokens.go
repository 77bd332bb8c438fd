package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/agent-on-demand/aod/api"
)

// Tokens manages the tokens of a server for an administrator: of the server all, of a team those of that.
type Tokens struct{ conn *conn }

// newToken is the answer that has a token: it is in no other one.
type newToken struct{ Token string }

// List lists the tokens, the oldest first.
func (c Tokens) List(ctx context.Context) ([]api.Token, error) {
	list, err := got[struct{ Tokens []api.Token }](ctx, c.conn, to(http.MethodGet, "tokens"))
	return list.Tokens, err
}

// Add makes a token and returns it: it can't be read again.
func (c Tokens) Add(ctx context.Context, asked api.TokenRequest) (string, error) {
	r := to(http.MethodPost, "tokens").with(asked)
	r.once = true
	made, err := got[newToken](ctx, c.conn, r)
	return made.Token, err
}

// Rotate makes another token in place of one and returns it. The earlier one is good until the grace is over: "1h", "0"
// for not at all, "" for what is usual.
func (c Tokens) Rotate(ctx context.Context, name, grace string) (string, error) {
	body := map[string]string{}
	if grace != "" {
		body["grace"] = grace
	}
	r := to(http.MethodPost, "tokens", name, "rotate").with(body)
	r.once = true
	made, err := got[newToken](ctx, c.conn, r)
	return made.Token, err
}

// Remove revokes a token. Its schedules go to the token of another name; "" leaves them.
func (c Tokens) Remove(ctx context.Context, name, give string) (api.RemovedToken, error) {
	r := to(http.MethodDelete, "tokens", name)
	if give != "" {
		r.query = url.Values{"give": {give}}
	}
	r.once = true
	return got[api.RemovedToken](ctx, c.conn, r)
}

// Login returns where people sign in at the server. No token is needed.
func (c *Client) Login(ctx context.Context) (api.Login, error) {
	return got[api.Login](ctx, c.conn, to(http.MethodGet, "login"))
}

// Whoami returns what the server knows of who asks.
func (c *Client) Whoami(ctx context.Context) (api.Whoami, error) {
	return got[api.Whoami](ctx, c.conn, to(http.MethodGet, "whoami"))
}
