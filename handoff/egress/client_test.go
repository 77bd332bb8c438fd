package egress

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
)

func TestAClientOfThisProcessReachesPublicAddressesAlone(t *testing.T) {
	known := &names{known: map[string][]string{"private.example": {"10.0.0.1"}, "meta.example": {"169.254.169.254"}, "moves.example": {"198.41.0.4", "127.0.0.1"}}}
	d := New(Options{Resolver: known})
	for authority, kind := range map[string]fault.Kind{
		"private.example:443": fault.Forbidden, "meta.example:80": fault.Forbidden, "PRIVATE.example.:443": fault.Forbidden,
		"127.0.0.1:443": fault.Forbidden, "[::1]:443": fault.Forbidden, "[::ffff:127.0.0.1]:443": fault.Forbidden, "[::ffff:a9fe:a9fe]:443": fault.Forbidden,
		"169.254.169.254:80": fault.Forbidden, "10.1.2.3:443": fault.Forbidden, "[fd00::1]:443": fault.Forbidden, "0.0.0.0:443": fault.Forbidden,
		"[fe80::1%lo]:443": fault.BadRequest, "127.1:443": fault.BadRequest, "0x7f.1:443": fault.BadRequest, "2130706433:443": fault.BadRequest,
		"a b:443": fault.BadRequest, "host": fault.BadRequest, "host:0": fault.BadRequest, ":443": fault.BadRequest, "nobody.example:443": fault.Unavailable,
	} {
		if err := d.Check(t.Context(), authority); !fault.Is(err, kind) {
			t.Errorf("Check %s: %v", authority, err)
		}
		conn, err := d.DialContext(t.Context(), "tcp", authority)
		if !fault.Is(err, kind) {
			t.Errorf("DialContext %s: %v", authority, err)
		}
		if conn != nil {
			t.Errorf("%s is reached", authority)
		}
	}
	if err := d.Check(t.Context(), "moves.example:443"); err != nil {
		t.Errorf("a public address: %v", err)
	}
	if _, err := d.DialContext(t.Context(), "tcp", "moves.example:443"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("when it has moved: %v", err)
	}
	if err := d.Check(t.Context(), "198.41.0.4:443"); err != nil {
		t.Errorf("a public address in the place of a name: %v", err)
	}
}

// A machine of a cloud often has a public address itself, at which its own services listen.
func TestAPublicAddressOfThisMachineIsRefused(t *testing.T) {
	d := New(Options{Resolver: &names{known: map[string][]string{"own.example": {"198.41.0.4"}, "own6.example": {"2606:4700::1"}, "both.example": {"198.41.0.4 198.41.0.5"}}}})
	d.interfaces = func() ([]net.Addr, error) {
		return []net.Addr{
			&net.IPNet{IP: net.IPv4(198, 41, 0, 4), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2606:4700::1"), Mask: net.CIDRMask(64, 128)},
		}, nil
	}
	for _, authority := range []string{"own.example:443", "own6.example:443", "198.41.0.4:443", "[2606:4700::1]:80", "[::ffff:198.41.0.4]:443"} {
		if err := d.Check(t.Context(), authority); !fault.Is(err, fault.Forbidden) {
			t.Errorf("Check %s: %v", authority, err)
		}
		if _, err := d.DialContext(t.Context(), "tcp", authority); !fault.Is(err, fault.Forbidden) {
			t.Errorf("DialContext %s: %v", authority, err)
		}
	}
	to := target{host: "own.example", port: 443}
	if err := d.lastLook(to, false)("tcp", "198.41.0.4:443", nil); !fault.Is(err, fault.Forbidden) {
		t.Errorf("when its socket connects: %v", err)
	}
	if err := d.lastLook(to, false)("tcp", "198.41.0.5:443", nil); err != nil {
		t.Errorf("a neighbour's: %v", err)
	}
	if addrs, _, err := d.addresses(t.Context(), target{host: "both.example", port: 443}); err != nil || len(addrs) != 1 || addrs[0].String() != "198.41.0.5" {
		t.Errorf("of two: %v, %v", addrs, err)
	}
	d.interfaces = func() ([]net.Addr, error) { return nil, net.UnknownNetworkError("none") }
	if err := d.Check(t.Context(), "198.41.0.5:443"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("where nobody knows which are its own: %v", err)
	}
}

func TestAnExceptionHoldsForAClientOfThisProcess(t *testing.T) {
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	t.Cleanup(host.Close)
	_, port, _ := net.SplitHostPort(host.Listener.Addr().String())
	d := New(Options{Resolver: &names{}, Private: []outside.Exception{{Host: "near.example", Addr: netip.MustParseAddr("127.0.0.1")}}})
	transport := &http.Transport{DialContext: d.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	answer, err := (&http.Client{Transport: transport}).Get("http://Near.Example:" + port + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); string(body) != "hello" {
		t.Errorf("%s", body)
	}
	for host, want := range map[string]bool{"near.example": true, "NEAR.example.": true, "far.example": false, strings.Repeat("x", 300): false, "": false} {
		if d.Excepts(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}
