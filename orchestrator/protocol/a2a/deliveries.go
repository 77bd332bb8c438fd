package a2a

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/stats"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// deliveryTime bounds how long a message waits that was sent before, while the answer to that is being
// delivered. It is far more than that takes, but for a client that doesn't read.
const deliveryTime = 5 * time.Second

// deliveries are the answers that are being delivered, by whose their messages are and their digests. Whether the
// same message joins its task is not known before their end.
type deliveries struct {
	svc    Service
	logger *slog.Logger

	mu    sync.Mutex
	under map[sent]*delivery
}

// sent is a message of somebody's.
type sent struct{ owner, resend string }

type delivery struct {
	answers int
	over    chan struct{}
}

// begin notes that an answer is being delivered. end must be called.
func (d *deliveries) begin(heard reception) (end func()) {
	if heard.resend == "" {
		return func() {}
	}
	message := sent{heard.owner, heard.resend}
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.under[message]
	if one == nil {
		one = &delivery{over: make(chan struct{})}
		d.under[message] = one
	}
	one.answers++
	return func() { d.end(message, one) }
}

func (d *deliveries) end(message sent, one *delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one.answers--; one.answers == 0 {
		delete(d.under, message)
		close(one.over)
	}
}

// await returns when no answer to a message is being delivered.
func (d *deliveries) await(ctx context.Context, resend string) {
	d.mu.Lock()
	one := d.under[sent{httpwire.OwnerOf(ctx), resend}]
	d.mu.Unlock()
	if one == nil {
		return
	}
	late := time.NewTimer(deliveryTime)
	defer late.Stop()
	select {
	case <-one.over:
	case <-late.C:
	case <-ctx.Done():
	}
}

// deliver sends an answer, and notes that the client has heard what became of its message.
func (d *deliveries) deliver(ctx context.Context, c *call, send func() error) {
	_, _, heard := c.end()
	end := d.begin(heard)
	defer end()
	if send() == nil {
		d.note(ctx, heard)
	}
}

// note notes what a client has heard. A server that dies before is asked again by its clients.
func (d *deliveries) note(ctx context.Context, heard reception) {
	if heard.run == "" {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := d.svc.Delivered(ctx, heard.run, heard.resend); err != nil {
		d.logger.WarnContext(ctx, "delivery not noted", "run", heard.run, fault.LogAttr(err))
	}
}

// grpcDeliveries notes that answers were sent, which interceptors return too early to know.
type grpcDeliveries struct{ all *deliveries }

// grpcSent is an answer that is being sent.
type grpcSent struct {
	heard reception
	end   func() // of the delivery; nil: there is no answer
}

type grpcSentKey struct{}

func (g *grpcSent) begin(all *deliveries, c *call) {
	_, _, g.heard = c.end()
	g.end = all.begin(g.heard)
}

// TagRPC implements stats.Handler.
func (d grpcDeliveries) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, grpcSentKey{}, &grpcSent{})
}

// HandleRPC implements stats.Handler.
func (d grpcDeliveries) HandleRPC(ctx context.Context, what stats.RPCStats) {
	end, over := what.(*stats.End)
	sent, ours := ctx.Value(grpcSentKey{}).(*grpcSent)
	if !over || !ours || sent.end == nil {
		return
	}
	defer sent.end()
	if end.Error == nil {
		d.all.note(ctx, sent.heard)
	}
}

// TagConn implements stats.Handler.
func (d grpcDeliveries) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

// HandleConn implements stats.Handler.
func (d grpcDeliveries) HandleConn(context.Context, stats.ConnStats) {}
