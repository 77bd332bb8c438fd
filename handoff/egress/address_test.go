package egress

import (
	"net"
	"net/netip"
	"testing"
)

func TestOnlyAddressesOfTheInternetArePublic(t *testing.T) {
	for text, public := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "172.15.255.255": true, "172.32.0.1": true, "100.63.255.255": true, "100.128.0.0": true, "198.17.0.1": true, "198.20.0.1": true, "223.255.255.255": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "10.255.255.255": false, "100.64.0.1": false, "100.127.255.255": false, "127.0.0.1": false, "127.255.0.1": false,
		"169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false, "192.0.0.1": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.1.1": false,
		"198.18.0.1": false, "198.19.255.255": false, "198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "239.1.1.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"2606:4700::1111": true, "2a00:1450:4001::1": true, "2003::1": true,
		"::": false, "::1": false, "::ffff:8.8.8.8": false, "::8.8.8.8": false, "64:ff9b::808:808": false, "64:ff9b:1::1": false, "100::1": false,
		"2001::1": false, "2001:20::1": false, "2001:db8::1": false, "2002:a00:1::1": false, "3fff::1": false, "4000::1": false,
		"fc00::1": false, "fd12:3456::1": false, "fe80::1": false, "fe80::1%eth0": false, "2606:4700::1%eth0": false, "fec0::1": false, "ff02::1": false, "5f00::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(text)); got != public {
			t.Errorf("%s: %v", text, got)
		}
	}
	if isPublic(netip.Addr{}) {
		t.Error("no address is public")
	}
	if !isOurs(netip.MustParseAddr("127.0.0.1"), net.InterfaceAddrs) || isOurs(netip.MustParseAddr("8.8.8.8"), net.InterfaceAddrs) {
		t.Error("the addresses of this machine aren't known")
	}
}
