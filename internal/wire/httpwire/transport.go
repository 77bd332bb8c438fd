package httpwire

import (
	"net"
	"net/http"
	"net/netip"
	"time"
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
