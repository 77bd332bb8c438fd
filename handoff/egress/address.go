package egress

import (
	"net"
	"net/netip"
	"slices"
)

// notPublic are the addresses of IPv4 that lead nowhere, or to somebody's own network.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)

// public6 is all of IPv6 that is given to anybody, and notPublic6 what of it leads elsewhere: to
// IPv4 by Teredo and 6to4, and to documentation. NAT64 and mapped addresses are outside of it.
var (
	public6    = netip.MustParsePrefix("2000::/3")
	notPublic6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// isPublic reports whether an address is one of the internet at large.
func isPublic(a netip.Addr) bool {
	in := func(p netip.Prefix) bool { return p.Contains(a) }
	switch {
	case !a.IsValid() || a.Zone() != "":
		return false
	case a.Is4():
		return !slices.ContainsFunc(notPublic, in)
	}
	return public6.Contains(a) && !slices.ContainsFunc(notPublic6, in)
}

// isOurs reports whether an address is one of this machine's, as its interfaces have them. One that
// can't be told counts as such.
func isOurs(a netip.Addr, interfaces func() ([]net.Addr, error)) bool {
	own, err := interfaces()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(own, func(one net.Addr) bool {
		p, err := netip.ParsePrefix(one.String())
		return err == nil && p.Addr().Unmap() == a
	})
}
