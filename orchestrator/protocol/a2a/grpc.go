package a2a

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	pbv0 "github.com/a2aproject/a2a-go/a2apb"
	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	grpcv0 "github.com/a2aproject/a2a-go/v2/a2agrpc/v0"
	grpcv1 "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	sdklog "github.com/a2aproject/a2a-go/v2/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	grpcDrain   = 10 * time.Second // that calls under way have when the server ends
	grpcHeaders = 64 << 10
	grpcCalls   = 1000 // of one connection at a time
	serviceV1   = "/lf.a2a.v1."
)

// ServeGRPC serves gRPC on the listener until ctx ends, and closes it. Then calls get 10 seconds,
// and those that wait for runs are ended at once; the runs go on.
func (s *Server) ServeGRPC(ctx context.Context, listener net.Listener) error {
	g := &grpcBinding{server: s, atEnd: func(do func()) func() bool { return context.AfterFunc(ctx, do) }}
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(int(s.opts.MaxBytes)), grpc.MaxHeaderListSize(grpcHeaders),
		grpc.MaxConcurrentStreams(grpcCalls),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: httpwire.Heartbeat}),
		grpc.StaticStreamWindowSize(grpcCallWindow), grpc.StaticConnWindowSize(grpcConnWindow),
		grpc.InTapHandle(g.tap), grpc.UnaryInterceptor(g.unary), grpc.StreamInterceptor(g.stream),
		grpc.StatsHandler(grpcDeliveries{s.deliveries}), grpc.StatsHandler(grpcIntake{}),
	)
	grpcv1.NewHandler(s.handler).RegisterWith(server)
	grpcv0.NewHandler(s.handler).RegisterWith(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(grpcListener{listener, s.opts.Memory}) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve grpc: %w", err)
	case <-ctx.Done():
	}
	cut := time.AfterFunc(grpcDrain, server.Stop)
	defer cut.Stop()
	server.GracefulStop()
	if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve grpc: %w", err)
	}
	return nil
}

// grpcBinding looks at calls before the SDK does.
type grpcBinding struct {
	server *Server
	atEnd  func(do func()) (unhook func() bool) // of the server, and with it of what waits for runs
}

// begin makes the call of a request. end must be called.
func (g *grpcBinding) begin(ctx context.Context, method string) (_ context.Context, c *call, end func(), err error) {
	meta, _ := metadata.FromIncomingContext(ctx)
	opts := g.server.opts
	c = &call{grpc: true, unit: opts.Root, base: opts.base(opts.HTTP), trace: first(meta, "traceparent")}
	if err := g.checkVersion(meta, method, c); err != nil {
		return ctx, c, func() {}, err
	}
	context.AfterFunc(ctx, c.letGo) // when all of the answer is sent
	ctx, cancel := context.WithCancelCause(sdklog.AttachLogger(withCall(ctx, c), g.server.quiet))
	unhook := g.atEnd(func() { cancel(httpwire.ErrServerEnds) })
	return ctx, c, func() { unhook(); cancel(nil) }, nil
}

func (g *grpcBinding) checkVersion(meta metadata.MD, method string, c *call) error {
	version, err := plainVersion(first(meta, strings.ToLower(sdk.SvcParamVersion)))
	if err != nil {
		return err
	}
	ours := version03
	if strings.HasPrefix(method, serviceV1) {
		ours = version10
	}
	c.legacy = ours == version03
	if version != "" && version != ours {
		return refuse(badVersion, "this service is that of version "+ours+" of A2A")
	}
	return nil
}

// teamKey is the metadata of a call that names the team for which it asks, as the header Aod-Team does over HTTP.
const teamKey = "aod-team"

// token is the token that a call bears.
func (g *grpcBinding) token(meta metadata.MD) string {
	if header := g.server.opts.Header; header != "" {
		if key := first(meta, strings.ToLower(header)); key != "" {
			return key
		}
	}
	scheme, token, _ := strings.Cut(first(meta, "authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func first(meta metadata.MD, key string) string {
	if values := meta.Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// look reads of a request what the SDK doesn't. A page of size 0 isn't an error here: the SDK's own
// clients ask for one where they mean that they don't care.
func (g *grpcBinding) look(c *call, request any) {
	if tenant, ok := request.(interface{ GetTenant() string }); ok && tenant.GetTenant() != "" {
		c.unit = tenant.GetTenant()
	}
	if sent, ok := request.(*pbv0.SendMessageRequest); ok {
		immediate := !sent.GetConfiguration().GetBlocking()
		c.immediate = &immediate
	}
}

// status is an error as gRPC writes it. The SDK's own words about a request may repeat it.
func (g *grpcBinding) status(ctx context.Context, c *call, err error) error {
	if err == nil {
		return nil
	}
	var known *refusal
	reached, failure, _ := c.end()
	switch {
	case failure != nil:
		known = failure
	case errors.As(err, &known):
	case !reached && !isOurs(err):
		known = refuse(badParams, "the request can't be read")
	case isOurs(err):
		known = g.server.refusals.of(ctx, err)
	default:
		return err
	}
	return known.GRPCStatus().Err()
}

// isOurs reports whether an error is a fault.
func isOurs(err error) bool {
	var known *fault.Error
	return errors.As(err, &known)
}

func (g *grpcBinding) unary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (answer any, err error) {
	ctx, c, end, err := g.begin(ctx, info.FullMethod)
	defer end()
	if err == nil {
		g.look(c, req)
		answer, err = next(ctx, req)
	}
	if err != nil {
		return nil, g.status(ctx, c, err)
	}
	if sent, ok := ctx.Value(grpcSentKey{}).(*grpcSent); ok {
		sent.begin(g.server.deliveries, c)
	}
	return answer, nil
}

func (g *grpcBinding) stream(
	srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler,
) error {
	ctx, c, end, err := g.begin(stream.Context(), info.FullMethod)
	defer end()
	if err == nil {
		err = next(srv, &grpcStream{ServerStream: stream, ctx: ctx, call: c, binding: g})
	}
	return g.status(ctx, c, err)
}

// grpcStream is a stream whose request is looked at, and whose first answer is noted.
type grpcStream struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // it is what Context returns
	call    *call
	binding *grpcBinding
	told    atomic.Bool
}

// Context implements grpc.ServerStream.
func (s *grpcStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *grpcStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	s.binding.look(s.call, m)
	return nil
}

// SendMsg implements grpc.ServerStream.
func (s *grpcStream) SendMsg(m any) error {
	defer s.call.sent()
	if s.told.Swap(true) {
		return s.ServerStream.SendMsg(m)
	}
	var err error
	s.binding.server.deliveries.deliver(s.ctx, s.call, func() error {
		err = s.ServerStream.SendMsg(m)
		return err
	})
	return err
}
