package outside

import (
	"net/netip"
	"strings"
)

// Exception is a host that may be at an address which isn't public.
type Exception struct {
	Host string
	Addr netip.Addr // where it is; the zero Addr: wherever its name leads
}

// ParseException reads host, or host=address. The error is an Input fault that quotes the text.
func ParseException(text string) (Exception, error) {
	host, address, fixed := strings.Cut(text, "=")
	e := Exception{Host: strings.ToLower(host)}
	if why := WhyNoHost(e.Host); why != "" {
		return Exception{}, wrong(text, why,
			"write the name of a host, or a name and its address: db.internal=10.0.0.5")
	}
	if fixed {
		addr, err := netip.ParseAddr(address)
		if err != nil || addr.Zone() != "" {
			return Exception{}, wrong(text, "has no address behind =",
				"write a name and its address: db.internal=10.0.0.5")
		}
		e.Addr = addr.Unmap()
	}
	return e, nil
}

// String returns the exception as ParseException reads it.
func (e Exception) String() string {
	if !e.Addr.IsValid() {
		return e.Host
	}
	return e.Host + "=" + e.Addr.String()
}
