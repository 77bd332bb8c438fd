package a2a

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	pbv1 "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stalling is a connection on which no more than so many bytes go out, until it is closed.
type stalling struct {
	net.Conn
	left   atomic.Int64
	closed chan struct{}
}

func (s *stalling) Write(p []byte) (int, error) {
	if s.left.Add(-int64(len(p))) < 0 {
		<-s.closed
		return 0, net.ErrClosed
	}
	return s.Conn.Write(p)
}

func (s *stalling) Close() error {
	err := s.Conn.Close()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return err
}

// stalled begins a call whose message of 8 MiB stops after so many bytes. stop ends it.
func stalled(t *testing.T, address string, after int64, token string) (ended <-chan error, stop func()) {
	t.Helper()
	dialled := make(chan *stalling, 100)
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
			s := &stalling{Conn: conn, closed: make(chan struct{})}
			s.left.Store(after)
			dialled <- s
			return s, err
		}))
	must(t, err)
	done := make(chan error, 1)
	ctx := metadata.AppendToOutgoingContext(trusted.Context(t), "authorization", "Bearer "+token)
	go func() {
		_, err := pbv1.NewA2AServiceClient(conn).SendMessage(ctx, hello10(strings.Repeat("x", 8<<20)))
		done <- err
	}()
	return done, func() {
		_ = (<-dialled).Close() // gRPC would wait for it
		_ = conn.Close()
	}
}

func TestWhatComesOverGRPCCounts(t *testing.T) {
	w := newHarness(t, nil)
	g := bytegate.New(16 << 20)
	v1 := dial(t, w, func(o *Options) {
		o.Memory, o.NoAuth = g, false
		o.Authorize = func(ctx context.Context, of Caller) (context.Context, error) {
			token := of.Token
			if token == "bad" {
				return ctx, fault.New(fault.Unauthorized, "the token is not this server's")
			}
			return bytegate.Counting(ctx, g, token), nil
		}
	})
	address := v1.Target()

	first, stop := stalled(t, address, 5<<20, "one")
	testkit.Eventually(t, "what has come of it counts", func() bool { return g.Held() > 4<<20 })
	if _, err := g.Take("one", 4<<20); err == nil {
		t.Error("it does not count for the client")
	}
	good := metadata.AppendToOutgoingContext(trusted.Context(t), "authorization", "Bearer another")
	if _, err := pbv1.NewA2AServiceClient(v1).SendMessage(good, hello10(strings.Repeat("x", 1<<20))); err != nil {
		t.Errorf("a neighbour: %v", err)
	}
	second, stop2 := stalled(t, address, 5<<20, "one")
	if err := <-second; status.Code(err) != codes.Unavailable {
		t.Errorf("over the client's share: %v", err)
	}
	if err, held := <-unauthorised(t, address), g.Held(); status.Code(err) != codes.Unauthenticated || held > 6<<20 {
		t.Errorf("without a token: %v, %d bytes are held", err, held)
	}
	stop()
	stop2()
	<-first
	testkit.Eventually(t, "all memory is given back", func() bool { return g.Held() == 0 })
}

func unauthorised(t *testing.T, address string) <-chan error {
	t.Helper()
	ended, stop := stalled(t, address, 64<<20, "bad")
	t.Cleanup(stop)
	return ended
}

// deadlined is a connection of which nothing comes, and that knows its deadline.
type deadlined struct {
	net.Conn
	read time.Time
}

func (d *deadlined) SetReadDeadline(t time.Time) error {
	d.read = t
	return nil
}

func (d *deadlined) Read(p []byte) (int, error) { return len(p), nil }

func (d *deadlined) Close() error { return errors.ErrUnsupported }

func TestAMessageOverGRPCHasToComeAtAPace(t *testing.T) {
	inner := &deadlined{}
	g := bytegate.New(0)
	c := &grpcConn{Conn: inner, gate: g}
	c.expect()
	first := inner.read
	if left := time.Until(first); left <= 0 || left > httpwire.PaceTime {
		t.Errorf("the message has %v", left)
	}
	_, err := c.Read(make([]byte, httpwire.PaceBytes-1))
	must(t, err)
	if !inner.read.Equal(first) {
		t.Error("it has more time before a MiB has come")
	}
	_, err = c.Read(make([]byte, 1))
	must(t, err)
	if !inner.read.After(first) || g.Held() != httpwire.PaceBytes {
		t.Errorf("a MiB has come, and it has the time of before; %d bytes are held", g.Held())
	}
	if held := c.arrived(1000); held != 1000 || g.Held() != 1000 || !inner.read.IsZero() {
		t.Errorf("%d bytes are held for its call, %d at the gate, until %v", held, g.Held(), inner.read)
	}
}
