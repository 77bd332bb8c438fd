package egress

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// raw has a listener be good.example, which says ! to the first bytes that come, and "late" to
// the end. It returns its authority.
func (w *harness) raw() string {
	w.t.Helper()
	return w.behind(func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1))
		_, _ = conn.Write([]byte("!"))
		_, _ = io.Copy(io.Discard, conn)
		_, _ = conn.Write([]byte("late"))
	})
}

// behind has a listener be good.example, which answers each connection so, and returns its
// authority.
func (w *harness) behind(answer func(net.Conn)) string {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				answer(conn)
			}()
		}
	}()
	at := netip.MustParseAddrPort(listener.Addr().String())
	w.session.terms.Allowed = outside.List{{Host: "good.example", Port: at.Port()}}
	return fmt.Sprintf("good.example:%d", at.Port())
}

// opened has tunnels in which TLS was begun.
func (w *harness) opened(authority string, n int) []net.Conn {
	w.t.Helper()
	if w.hello == nil {
		w.hello = named(w.t, "good.example")
	}
	conns := make([]net.Conn, n)
	for i := range conns {
		conn, in, answer := w.connect(authority)
		if answer.StatusCode != 200 {
			w.t.Fatal(answer.Status)
		}
		_, _ = conn.Write(w.hello)
		if b, err := in.ReadByte(); err != nil || b != '!' {
			w.t.Fatal(b, err)
		}
		conns[i] = conn
	}
	return conns
}

func TestARunHasSoManyTunnels(t *testing.T) {
	w := newWorld(t, Options{Tunnels: 3})
	to := w.raw()
	conns := w.opened(to, 3)
	p := w.refusedWith(to)
	if p.Rule != RuleTunnels || p.Status != 429 || !strings.Contains(p.Detail, "3 tunnels") {
		t.Errorf("%+v", p)
	}
	_ = conns[0].Close()
	testkit.Eventually(t, "a place for another", func() bool { return len(w.session.slots) < 3 })
	w.opened(to, 1)
}

func TestTunnelsEndWithTheRun(t *testing.T) {
	w := newWorld(t, Options{})
	to := w.raw()
	conns := w.opened(to, 3)
	_ = w.session.Close()
	for _, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(testkit.Patience))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	}
	if p := w.refusedWith(to); p.Status != 503 {
		t.Errorf("%+v", p)
	}
}

func TestATunnelEndsWhenNothingMoves(t *testing.T) {
	w := newWorld(t, Options{Idle: 50 * time.Millisecond})
	conn, in, _ := w.connect(w.raw())
	_, _ = conn.Write(named(t, "good.example"))
	_ = conn.SetReadDeadline(time.Now().Add(testkit.Patience))
	if said, err := io.ReadAll(in); err != nil || string(said) != "!" && len(said) > 0 { // on a busy machine ! comes too late
		t.Errorf("%q, %v", said, err)
	}
	testkit.Eventually(t, "the tunnel ends", func() bool { return len(w.session.slots) == 0 })
	if rows := w.tally.Rows(); len(rows) != 1 || rows[0].Tunnels != 1 {
		t.Errorf("%+v", rows)
	}
}

// A side that has said all may go on listening.
func TestHalfATunnelMayEnd(t *testing.T) {
	w := newWorld(t, Options{})
	conn := w.opened(w.raw(), 1)[0]
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(testkit.Patience))
	if rest, err := io.ReadAll(conn); err != nil || string(rest) != "late" {
		t.Errorf("%q, %v", rest, err)
	}
	testkit.Eventually(t, "the tunnel ends", func() bool { return len(w.session.slots) == 0 })
}

func TestManyTunnelsLeaveNothingBehind(t *testing.T) {
	w := newWorld(t, Options{Tunnels: 1000}) // some may end later than the next ones begin
	to := w.raw()
	_ = w.opened(to, 1)[0].Close()
	testkit.Eventually(t, "the first ends", func() bool { return len(w.session.slots) == 0 })
	before := runtime.NumGoroutine()
	for range 1000 {
		_ = w.opened(to, 1)[0].Close()
	}
	testkit.Eventually(t, "goroutines as before", func() bool { return len(w.session.slots) == 0 && runtime.NumGoroutine() <= before+5 })
	if rows := w.tally.Rows(); len(rows) != 1 || rows[0].Tunnels != 1001 {
		t.Errorf("%+v", rows)
	}
}
