package container

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
)

// tracer makes the spans of an attempt. They are dropped unless the program sets an exporter.
var tracer = otel.Tracer("github.com/agent-on-demand/aod/orchestrator/kind/container")

// startSpan starts a span below the one in ctx. What is done for no run, such as the start of
// a sandbox that is to wait, has no span.
func startSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	above := trace.SpanFromContext(ctx)
	if !above.SpanContext().IsValid() {
		return ctx, above
	}
	return tracer.Start(ctx, name)
}
