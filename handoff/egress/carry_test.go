package egress

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// much is more than is copied before the kernel is asked to pass it on.
func much(t testing.TB) []byte {
	t.Helper()
	all := make([]byte, 5*spliceAfter+12345)
	if _, err := io.ReadFull(rand.Reader, all); err != nil {
		t.Fatal(err)
	}
	return all
}

// echo is a server behind the tunnels that answers ! to the first message, and what follows with
// the same.
func (w *harness) echo() string {
	w.t.Helper()
	w.hello = named(w.t, "good.example")
	return w.behind(func(conn net.Conn) {
		_, _ = io.ReadFull(conn, make([]byte, len(w.hello)))
		_, _ = conn.Write([]byte("!"))
		_, _ = io.Copy(struct{ io.Writer }{conn}, conn)
	})
}

func TestATunnelCarriesMuchBothWays(t *testing.T) {
	w := newWorld(t, Options{})
	conn := w.opened(w.echo(), 1)[0]
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	all := much(t)
	go func() {
		_, _ = conn.Write(all)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	if back, err := io.ReadAll(conn); err != nil || !bytes.Equal(back, all) {
		t.Errorf("%d bytes of %d came back, %v", len(back), len(all), err)
	}
	testkit.Eventually(t, "the tunnel ends", func() bool { return len(w.session.slots) == 0 })
	want := int64(len(all))
	if rows := w.tally.Rows(); len(rows) != 1 || rows[0].BytesOut != want+int64(len(w.hello)) || rows[0].BytesIn != want+1 {
		t.Errorf("%+v", rows)
	}
}

// Where a side isn't a socket of the kernel's, as with an engine elsewhere, bytes are copied.
func TestMuchIsCarriedWithoutTheKernel(t *testing.T) {
	in, out := net.Pipe()
	from, to := net.Pipe()
	all := much(t)
	var counted atomic.Int64
	go func() {
		_, _ = in.Write(all)
		_ = in.Close()
	}()
	go carry(from, out, func(n int) { counted.Add(int64(n)) })
	if there, err := io.ReadAll(to); err != nil || !bytes.Equal(there, all) || counted.Load() != int64(len(all)) {
		t.Errorf("%d bytes of %d are there, %d were counted, %v", len(there), len(all), counted.Load(), err)
	}
}
