package orchestrator

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
)

// tracer makes the spans of a run; they go nowhere unless the program says where.
var tracer = otel.Tracer("github.com/agent-on-demand/aod/orchestrator")

// withRemoteParent puts the run's span below the one of whoever asked for it (W3C Trace
// Context); anything else than such a context is passed over.
func withRemoteParent(ctx context.Context, traceParent string) context.Context {
	if traceParent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceParent})
}
