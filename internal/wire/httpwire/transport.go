package httpwire

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// NewTransport returns the transport of a client of ours. It asks for nothing compressed:
// sizes, limits and digests are those of the bytes that come. Proxies are those of the
// environment.
func NewTransport() *http.Transport {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     30 * time.Second,
		MaxIdleConnsPerHost: 8,
		DisableCompression:  true,
	}
}

// IsLoopback reports whether the host of an address is this machine by its very name.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// ParseAgentAddress reads the base address of an agent's endpoints. An address without a scheme is https.
// Plain http is for loopback, or if plain asks for it.
func ParseAgentAddress(address string, plain bool) (*url.URL, error) {
	const form = "write https://HOST, or http://127.0.0.1:PORT"
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	base, err := url.Parse(address)
	switch {
	case err != nil: // the error may show a password
		return nil, fault.New(fault.Input, "the agent's address can't be read").WithHint(form)
	case base.User != nil:
		return nil, fault.New(fault.Input, "the agent's address must not hold a password").
			WithHint("give the token as a secret")
	case base.Scheme != "http" && base.Scheme != "https", base.Hostname() == "":
		return nil, fault.New(fault.Input, "the agent's address is not one of http or https").WithHint(form)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, fault.New(fault.Input, "the agent's address goes on after its path").WithHint(form)
	case base.Scheme == "http" && !plain && !IsLoopback(base.Hostname()):
		return nil, fault.New(fault.Input, "plain http to %s would show everybody on the way what is sent", base.Host).
			WithHint("use https, or allow plain http for this agent")
	}
	return base, nil
}

// CheckAgentAddress returns the error of ParseAgentAddress for an address: an Input fault or nil.
func CheckAgentAddress(address string, plain bool) error {
	_, err := ParseAgentAddress(address, plain)
	return err
}
