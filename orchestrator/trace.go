package orchestrator

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-on-demand/aod/api"
)

// tracer makes the spans of a run. They are dropped unless the program sets an exporter.
var tracer = otel.Tracer("github.com/agent-on-demand/aod/orchestrator")

// withRemoteParent makes the caller's span the parent of the run's span (W3C Trace Context).
// It ignores an invalid trace context.
func withRemoteParent(ctx context.Context, traceParent string) context.Context {
	if traceParent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceParent})
}

// traceParentOf returns the trace context of the span in ctx, "" for none.
func traceParentOf(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// traceIDOf returns the trace of a trace context, "" for none.
func traceIDOf(traceParent string) string {
	is := trace.SpanContextFromContext(withRemoteParent(context.Background(), traceParent))
	if !is.HasTraceID() {
		return ""
	}
	return is.TraceID().String()
}

// startSpan starts the span of the run, below the one of its caller. The runs that it calls
// get theirs below it.
func (j *job) startSpan() (context.Context, trace.Span) {
	ctx, span := tracer.Start(withRemoteParent(j.life, j.terms.TraceParent), "run",
		trace.WithAttributes(attribute.String("aod.run", j.ID), attribute.String("aod.unit", j.Record.Unit)))
	j.traceParent = traceParentOf(ctx)
	if is := span.SpanContext(); is.HasTraceID() {
		j.Record.TraceID = is.TraceID().String()
	}
	j.loop.opts.Traces.Begin(j.ID, j.Record.TraceID)
	return ctx, span
}

// endSpan ends the span of the run. It says how the run ended, without a word of its program.
// A run that goes on in another process has no outcome yet.
func (j *job) endSpan(span trace.Span) {
	defer span.End()
	r := &j.Record
	if r.Outcome == "" {
		return
	}
	span.SetAttributes(
		attribute.String("aod.outcome", string(r.Outcome)), attribute.Int("aod.attempt", j.Attempt),
		attribute.Int64("aod.queue_ms", int64(r.Timings.Queue)))
	if r.Error != nil {
		span.SetAttributes(attribute.String("aod.error.kind", r.Error.Kind))
	}
	if r.Outcome != api.Success && r.Outcome != api.WasCancelled {
		span.SetStatus(codes.Error, string(r.Outcome))
	}
}

// Span implements run.Host.
func (j *job) Span(name string, options ...trace.SpanStartOption) trace.Span {
	_, span := tracer.Start(withRemoteParent(context.Background(), j.traceParent), name, options...)
	return span
}

// spanOfWait adds a span of the time in the queue, which ends now.
func spanOfWait(ctx context.Context, began time.Time) {
	_, span := tracer.Start(ctx, "queue", trace.WithTimestamp(began))
	span.End()
}
