package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
)

// maxAddresses is how many addresses of a name are tried.
const maxAddresses = 8

// target is the host that a request is for.
type target struct {
	host  string // a name in lower case
	port  uint16
	plain bool
}

// String returns the target as host:port.
func (t target) String() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

// targetOf reads the authority of a request. The error is a fault that a program may know.
func targetOf(authority string, usual uint16) (target, error) {
	host, port, has := outside.CutPort(authority)
	t := target{host: strings.ToLower(strings.TrimSuffix(host, ".")), port: usual}
	if has {
		var ok bool
		if t.port, ok = outside.ParsePort(port); !ok {
			return t, fault.New(fault.BadRequest, "the request names no port from 1 to 65535").
				WithHint("ask for host:port")
		}
	}
	why := outside.WhyNoHost(t.host)
	switch {
	case why == "":
		return t, nil
	case outside.IsAddress(t.host):
		return t, refuse(RuleList,
			fault.New(fault.Forbidden, "an address can't be reached, only a host that agent.yaml lists by its name").
				WithHint("ask for the host by its name"))
	}
	return t, fault.New(fault.BadRequest, "what the request asks for %s", why).WithHint("ask for host:port")
}

// dial connects to a target. The name is looked up here, and nowhere before.
func (d *Door) dial(ctx context.Context, to target) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.opts.Connect)
	defer cancel()
	addrs, private, err := d.addresses(ctx, to)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Control: d.lastLook(to, private)}
	var conn net.Conn
	for _, addr := range addrs {
		conn, err = dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(addr, to.port).String())
		if err == nil {
			return conn, nil
		}
	}
	return nil, unreachable(to, err)
}

// lastLook checks an address when its socket is about to connect.
func (d *Door) lastLook(to target, private bool) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err == nil && !private && !d.mayReach(at.Addr().Unmap()) {
			err = notPublicAt(to)
		}
		return err
	}
}

// addresses returns those of a target that may be connected to, and whether they may be private.
func (d *Door) addresses(ctx context.Context, to target) (may []netip.Addr, private bool, err error) {
	for _, e := range *d.private.Load() {
		if e.Host != to.host {
			continue
		}
		if private = true; e.Addr.IsValid() {
			may = append(may, e.Addr)
		}
	}
	if len(may) > 0 {
		return may, true, nil
	}
	found, err := d.lookup(ctx, to.host)
	if err != nil {
		return nil, private, unreachable(to, err)
	}
	for _, addr := range found {
		addr = addr.Unmap()
		if (private || d.mayReach(addr)) && !slices.Contains(may, addr) && len(may) < maxAddresses {
			may = append(may, addr)
		}
	}
	if len(may) == 0 {
		return nil, private, notPublicAt(to)
	}
	return may, private, nil
}

// lookup returns the addresses of a name. Those of an address are itself.
func (d *Door) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	return d.opts.Resolver.LookupNetIP(ctx, "ip", absolute(host))
}

func (d *Door) mayReach(addr netip.Addr) bool { return isPublic(addr) && !isOurs(addr, d.interfaces) }

// absolute keeps a resolver from trying a name below domains of this machine's. A name without a
// dot has a meaning only there.
func absolute(host string) string {
	if strings.Contains(host, ".") {
		return host + "."
	}
	return host
}

// unreachable says why a target can't be reached, without anything of the network here.
func unreachable(to target, err error) error {
	var refused *refusal
	if errors.As(err, &refused) { // from Dialer.Control
		return refused
	}
	why := "it can't be connected to"
	var lookup *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		why = "nobody knows its name"
	case errors.As(err, &lookup):
		why = "its name can't be looked up now"
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "it refuses connections"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		why = "it doesn't answer in time"
	}
	return fault.Wrap(fault.Unavailable, err, "%s can't be reached: %s", to, why).WithHint("try again later")
}
