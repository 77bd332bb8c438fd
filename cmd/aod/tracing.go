package main

import (
	"context"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-on-demand/aod/api/fault"
)

// startTracing exports spans if the environment says so (the OTEL_ variables of the
// OpenTelemetry specification), and else does nothing.
func startTracing(
	ctx context.Context, version string, logger *slog.Logger,
) (stop func(context.Context) error, err error) {
	otel.SetTextMapPropagator(propagation.TraceContext{})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.Warn("traces not exported",
			fault.LogAttr(err))
	}))
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return func(context.Context) error { return nil }, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "traces can't be exported").
			WithHint("check the OTEL_ variables of the environment")
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("aod"), semconv.ServiceVersion(version)), resource.WithFromEnv())
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "OTEL_RESOURCE_ATTRIBUTES can't be read").
			WithHint("write it as key=value,key=value")
	}
	spans := withoutStrays{sdktrace.NewBatchSpanProcessor(exporter)}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithResource(about))
	otel.SetTracerProvider(provider)
	return func(ctx context.Context) error { return provider.Shutdown(context.WithoutCancel(ctx)) }, nil
}

// withoutStrays drops the spans of an engine's client that belong to no run: the server
// watches the engine and keeps its pool, too.
type withoutStrays struct{ sdktrace.SpanProcessor }

// OnEnd implements sdktrace.SpanProcessor.
func (w withoutStrays) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanKind() == trace.SpanKindClient && !s.Parent().IsValid() {
		return
	}
	w.SpanProcessor.OnEnd(s)
}
