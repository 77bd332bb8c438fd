// Package programtest builds aod for tests, as the Makefile does: its packages are compiled
// already then.
package programtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Program is aod as users have it, built once for the tests of a package. The zero value is
// ready; TestMain calls Remove in the end.
type Program struct {
	once sync.Once
	dir  string
	err  error
}

// Path returns where the program is.
func (p *Program) Path(t testing.TB) string {
	t.Helper()
	p.once.Do(func() {
		if p.dir, p.err = os.MkdirTemp("", "aod-program-"); p.err == nil {
			p.err = Build(p.name())
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.name()
}

func (p *Program) name() string { return filepath.Join(p.dir, "aod") }

// Remove removes the program, if it was built.
func (p *Program) Remove() {
	if p.dir != "" {
		_ = os.RemoveAll(p.dir) // a temporary directory
	}
}

// Build builds the program of this module into a file. More flags go to `go build`.
func Build(file string, flags ...string) error {
	args := append([]string{"build", "-trimpath", "-o", file}, flags...)
	build := exec.CommandContext(context.Background(), "go", append(args, "github.com/agent-on-demand/aod/cmd/aod")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// FreeAddress returns an address of loopback at which nobody listens on TCP: HOST:PORT. It is the test's until its
// end, whenever its server stops and starts: the port is below those that a kernel gives to outgoing connections
// (32768 and up on Linux), and who has its UDP half keeps other tests, of this process and of others, away from it.
func FreeAddress(t testing.TB) string {
	t.Helper()
	var config net.ListenConfig
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(22_000)) //nolint:gosec // anybody may guess a port
		held, err := config.ListenPacket(context.Background(), "udp", address)
		if err != nil {
			continue
		}
		l, err := config.Listen(context.Background(), "tcp", address)
		if err != nil {
			held.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { held.Close() })
		return address
	}
	t.Fatal("no port of loopback is free")
	return ""
}
