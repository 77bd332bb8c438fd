package mcp

import (
	"context"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// The names of OpenTelemetry's conventions for MCP, which are still being worked on.
const (
	spanMethod   = attribute.Key("mcp.method.name")
	spanRevision = attribute.Key("mcp.protocol.version")
	spanTool     = attribute.Key("gen_ai.tool.name")
	spanError    = attribute.Key("error.type")
)

// tracer makes the spans of calls. They are dropped unless the program sets an exporter.
var tracer = otel.Tracer("github.com/agent-on-demand/aod/orchestrator/protocol/mcp")

// traceCall starts the span of a call below that of its client, if the options ask for it. The
// trace context is what the run's span is to be below; "" is none. The span has the names of
// the tool and of the revision, and nothing that a client or a program said.
func (c *calls) traceCall(
	ctx context.Context, t *tool, req *sdk.CallToolRequest,
) (traceParent string, end func(sdk.Result, error)) {
	traceParent = httpwire.TraceParent(&http.Request{Header: headerOf(req)})
	if !c.spans {
		return traceParent, func(sdk.Result, error) {}
	}
	carrier := propagation.MapCarrier{}
	if traceParent != "" {
		carrier.Set("traceparent", traceParent)
	}
	ctx, span := tracer.Start(propagation.TraceContext{}.Extract(ctx, carrier), "tools/call "+t.Name,
		trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(spanMethod.String("tools/call"), spanTool.String(t.Name),
			spanRevision.String(req.ProtocolVersion())))
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent"), func(result sdk.Result, err error) {
		if why := failureOf(result, err); why != "" {
			span.SetAttributes(spanError.String(why))
			span.SetStatus(codes.Error, why)
		}
		span.End()
	}
}

// failureOf says how a call failed, without a word of anybody; "" if it didn't.
func failureOf(result sdk.Result, err error) string {
	if err != nil {
		return "protocol_error"
	}
	if called, ok := result.(*sdk.CallToolResult); ok && called.IsError {
		return "tool_error"
	}
	return ""
}

// headerOf is the trace context of a call: that of its own, or of its HTTP request.
func headerOf(req *sdk.CallToolRequest) http.Header {
	header := http.Header{}
	if req.Extra != nil && req.Extra.Header != nil {
		header.Set("Traceparent", req.Extra.Header.Get("Traceparent"))
	}
	if own, ok := req.Params.Meta["traceparent"].(string); ok {
		header.Set("Traceparent", own)
	}
	return header
}
