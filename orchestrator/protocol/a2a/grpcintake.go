package a2a

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/tap"

	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// The windows of flow control, in bytes: so much may come of a call, and of a connection, before
// anybody reads it.
const (
	grpcCallWindow = 64 << 10
	grpcConnWindow = 1 << 20
)

// tap lets only those begin a call who may: nothing is read of the message of others.
func (g *grpcBinding) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	if g.server.opts.Authorize != nil {
		var err error
		caller := Caller{g.token(info.Header), first(info.Header, teamKey), addressOf(ctx)}
		if ctx, err = g.server.opts.Authorize(ctx, caller); err != nil {
			return ctx, g.server.refusals.of(ctx, err).GRPCStatus().Err()
		}
	}
	if c := grpcConnOf(ctx); c != nil {
		c.claim(bytegate.HolderOf(ctx))
	}
	return ctx, nil
}

// grpcListener has what its connections bring count at a gate.
type grpcListener struct {
	net.Listener
	gate *bytegate.Gate
}

// Accept returns the next connection.
func (l grpcListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &grpcConn{Conn: conn, gate: l.gate}, nil
}

// grpcConn is a connection whose bytes count while a message is on its way. gRPC gathers a message
// before anybody sees it, so that a client with too many, or a slow one, loses the connection.
type grpcConn struct {
	net.Conn
	gate *bytegate.Gate

	mu        sync.Mutex
	claimed   bool
	holder    string
	receiving int   // calls whose message has not come whole
	held      int64 // bytes that came for them
	came      int64 // bytes of the pace's present MiB
	closed    bool
}

// grpcAddr is the address of a connection's client. It leads from a call to its connection.
type grpcAddr struct {
	net.Addr
	conn *grpcConn
}

// RemoteAddr implements net.Conn.
func (c *grpcConn) RemoteAddr() net.Addr { return grpcAddr{c.Conn.RemoteAddr(), c} }

func grpcConnOf(ctx context.Context) *grpcConn {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return nil
	}
	addr, _ := p.Addr.(grpcAddr)
	return addr.conn
}

// addressOf returns the address of a call's client, without its port; "": it isn't known.
func addressOf(ctx context.Context) string {
	p, _ := peer.FromContext(ctx)
	if p == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		return p.Addr.String()
	}
	return host
}

// claim says for whom the bytes count: for the client of the first call.
func (c *grpcConn) claim(holder string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.claimed {
		c.claimed, c.holder = true, holder
	}
}

// Read implements net.Conn.
func (c *grpcConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.receiving == 0 || c.closed {
		return n, err
	}
	if full := c.gate.Acquire(c.holder, int64(n)); full != nil {
		return 0, full
	}
	c.held += int64(n)
	if c.came += int64(n); c.came >= httpwire.PaceBytes {
		c.pace()
	}
	return n, err
}

// Close implements net.Conn.
func (c *grpcConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.free(c.held)
	c.mu.Unlock()
	return c.Conn.Close()
}

// pace gives the next MiB its time, while there is something to come. The caller holds the lock.
func (c *grpcConn) pace() {
	c.came = 0
	deadline := time.Time{}
	if c.receiving > 0 {
		deadline = time.Now().Add(httpwire.PaceTime)
	}
	_ = c.SetReadDeadline(deadline) // a connection that is closed needs none
}

func (c *grpcConn) free(n int64) {
	c.gate.Release(c.holder, n)
	c.held -= n
}

// expect says that a message is to come.
func (c *grpcConn) expect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.receiving++; c.receiving == 1 {
		c.pace()
	}
}

// arrived says that a message of n bytes has come, or none will. It returns what the call holds
// from now on.
func (c *grpcConn) arrived(n int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = min(n, c.held)
	c.held -= n
	if c.receiving--; c.receiving == 0 {
		c.free(c.held) // headers, and what stands around messages
	}
	c.pace()
	return n
}

// grpcIntake follows the messages of calls.
type grpcIntake struct{}

// grpcMessage is the message of a call.
type grpcMessage struct {
	conn    *grpcConn // nil: it isn't waited for
	waiting bool
	held    int64
}

type grpcMessageKey struct{}

// TagRPC implements stats.Handler.
func (grpcIntake) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, grpcMessageKey{}, &grpcMessage{conn: grpcConnOf(ctx)})
}

// HandleRPC implements stats.Handler.
func (grpcIntake) HandleRPC(ctx context.Context, what stats.RPCStats) {
	m, _ := ctx.Value(grpcMessageKey{}).(*grpcMessage)
	if m == nil || m.conn == nil {
		return
	}
	switch what := what.(type) {
	case *stats.Begin:
		m.waiting = true
		m.conn.expect()
	case *stats.InPayload:
		if m.waiting {
			m.waiting = false
			m.held = m.conn.arrived(int64(what.WireLength))
		}
	case *stats.End:
		if m.waiting {
			m.held = m.conn.arrived(0)
		}
		m.conn.gate.Release(m.conn.holder, m.held)
	}
}

// TagConn implements stats.Handler.
func (grpcIntake) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (grpcIntake) HandleConn(context.Context, stats.ConnStats) {}
