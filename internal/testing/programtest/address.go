package programtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreeAddress returns an address of loopback at which nobody listens: HOST:PORT. Its port is
// below those that a kernel gives to outgoing connections (32768 and up on Linux), so it stays
// free until the test's server takes it, but for a rare accident.
func FreeAddress(t testing.TB) string {
	t.Helper()
	var config net.ListenConfig
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000)) //nolint:gosec // anybody may guess a port
		if l, err := config.Listen(context.Background(), "tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no port of loopback is free")
	return ""
}
