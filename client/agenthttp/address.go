package agenthttp

import (
	"net/url"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// ParseAddress reads the base address of the endpoints. An address without a scheme is https.
// Plain http is for loopback, or if plain asks for it.
func ParseAddress(address string, plain bool) (*url.URL, error) {
	const form = "write https://HOST, or http://127.0.0.1:PORT"
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	base, err := url.Parse(address)
	switch {
	case err != nil: // the error may show a password
		return nil, fault.New(fault.Input, "the agent's address can't be read").WithHint(form)
	case base.User != nil:
		return nil, fault.New(fault.Input, "the agent's address must not hold a password").WithHint("give the token as a secret")
	case base.Scheme != "http" && base.Scheme != "https", base.Hostname() == "":
		return nil, fault.New(fault.Input, "the agent's address is not one of http or https").WithHint(form)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, fault.New(fault.Input, "the agent's address goes on after its path").WithHint(form)
	case base.Scheme == "http" && !plain && !httpwire.IsLoopback(base.Hostname()):
		return nil, fault.New(fault.Input, "plain http to %s would show everybody on the way what is sent", base.Host).
			WithHint("use https, or allow plain http for this agent")
	}
	return base, nil
}

// CheckAddress returns New's error for an address: an Input fault or nil.
func CheckAddress(address string, plain bool) error {
	_, err := ParseAddress(address, plain)
	return err
}

// SameOrigin compares two origins as the web does: scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" || u.Scheme == "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}
