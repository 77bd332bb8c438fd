package a2a

import (
	"context"

	"google.golang.org/grpc/stats"
)

// grpcDeliveries notes that answers were sent, which interceptors return too early to know.
type grpcDeliveries struct{ server *Server }

// grpcSent is an answer that is being sent.
type grpcSent struct {
	heard reception
	end   func() // of the delivery; nil: there is no answer
}

type grpcSentKey struct{}

func (g *grpcSent) begin(s *Server, c *call) {
	_, _, g.heard = c.end()
	g.end = s.deliveries.begin(g.heard.resend)
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
		d.server.note(ctx, sent.heard)
	}
}

// TagConn implements stats.Handler.
func (d grpcDeliveries) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

// HandleConn implements stats.Handler.
func (d grpcDeliveries) HandleConn(context.Context, stats.ConnStats) {}
