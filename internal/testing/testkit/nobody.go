package testkit

import (
	"net"
	"testing"
)

// Nobody returns an address of this host, with its port, where nobody listens. Nobody else gets the port
// before the test ends: it is one end of a connection.
func Nobody(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), listener.Close() })
	return conn.LocalAddr().String()
}
