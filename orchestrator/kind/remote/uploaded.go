package remote

import (
	"context"
	"net"
	"net/http"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/peer"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// The agent of an uploaded unit may be at public addresses alone, and at those that the operator
// excepts: its author could have this process ask whatever is in reach of the machine.

// checkUploaded returns a fault if the address of an agent leads to no public address now.
func (c *clients) checkUploaded(ctx context.Context, remote *capsule.Remote) error {
	base, err := httpwire.ParseAgentAddress(remote.URL, remote.PlainHTTP)
	if err != nil {
		return err
	}
	err = c.door.Check(ctx, net.JoinHostPort(base.Hostname(), peer.PortOf(base)))
	if fault.Is(err, fault.Unavailable) {
		return nil // one that can't be looked up now may be there later
	}
	return notPublic(err)
}

// dialUploaded connects to the agent of an uploaded unit. What is checked is the address that the
// connection has.
func (c *clients) dialUploaded(ctx context.Context, network, authority string) (net.Conn, error) {
	conn, err := c.door.DialContext(ctx, network, authority)
	if err != nil {
		return nil, notPublic(err)
	}
	return conn, nil
}

func notPublic(err error) error {
	if !fault.Is(err, fault.Forbidden) {
		return err
	}
	return fault.New(fault.Forbidden, "the agent of an uploaded unit has to be at a public address").
		WithHint("keep the unit in one of the server's `units` directories, or have the operator name the agent's " +
			"host in egress_private")
}

// staying takes from redirects where they lead to, so that nobody follows one.
type staying struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s staying) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Header.Del("Location")
	}
	return response, err
}
