package client

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// refusal turns an error response into the fault that the server made.
func (c *Client) refusal(response *http.Response) error {
	if response.StatusCode/100 == 3 {
		return c.redirected(response)
	}
	told, ok := httpwire.ReadProblem(response)
	if !ok {
		return c.mute(response)
	}
	refused := told.Fault()
	if refused.Kind == fault.Unauthorized {
		refused = refused.WithHint("name the file that holds this server's token with --token-file or " +
			"AOD_TOKEN_FILE; " +
			"`aod serve` keeps it in the file server/token of its data directory")
	}
	if checkID(told.Run) == nil {
		refused.Err = &runError{told.Run}
	}
	return refused
}

// mute is the fault for an error response without a problem document, as proxies send them.
func (c *Client) mute(response *http.Response) error {
	f := fault.New(fault.Unavailable, "%s answers %d without a reason", c.base, response.StatusCode).
		WithHint("is it a server of AOD, or a proxy before one?")
	if response.StatusCode == http.StatusBadGateway || response.StatusCode == http.StatusGatewayTimeout {
		f.Err = &lostError{errors.New("a proxy has lost its server")}
	}
	return f
}

// redirected refuses a redirect: the token is for this server alone.
func (c *Client) redirected(response *http.Response) error {
	f := fault.New(fault.Unsupported, "%s sends us elsewhere, which is not followed", c.base)
	if target, err := url.Parse(response.Header.Get("Location")); err == nil && target.Host != "" {
		return f.WithHint("if you trust %s://%s, name that server itself", target.Scheme, target.Host)
	}
	return f.WithHint("name the server by the address that it answers at")
}
