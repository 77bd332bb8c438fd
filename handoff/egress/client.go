package egress

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
)

// DialContext connects a client of this process to host:port by the rules of tunnels: the name is
// looked up here, and public addresses are connected to, or what an Exception allows. The host may
// be such an address itself. The error is a fault: Forbidden for what leads to no public address.
func (d *Door) DialContext(ctx context.Context, _, authority string) (net.Conn, error) {
	to, err := clientTarget(authority)
	if err != nil {
		return nil, err
	}
	conn, err := d.dial(ctx, to)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// Check looks the host of host:port up, and returns a Forbidden fault if it leads to no public
// address, and a BadRequest fault if that isn't a host. It doesn't connect, and what it finds holds
// for now: DialContext looks again.
func (d *Door) Check(ctx context.Context, authority string) error {
	to, err := clientTarget(authority)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.Connect)
	defer cancel()
	_, _, err = d.addresses(ctx, to)
	return err
}

// Excepts reports whether a host may be at an address that isn't public.
func (d *Door) Excepts(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(*d.private.Load(), func(e outside.Exception) bool { return e.Host == host })
}

// clientTarget reads host:port, where the host may be an address as IP addresses are written.
func clientTarget(authority string) (target, error) {
	host, text, has := outside.CutPort(authority)
	port, ok := outside.ParsePort(text)
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		host = addr.Unmap().String()
	} else if outside.WhyNoHost(host) != "" {
		ok = false
	}
	if !has || !ok {
		return target{}, fault.New(fault.BadRequest, "that isn't a host with a port from 1 to 65535").
			WithHint("name a host, such as api.example.com")
	}
	return target{host: host, port: port}, nil
}
