package orchestrator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// spans records what this package traces, until the test ends. Its callers aren't parallel: the tracer is
// the package's.
func spans(t *testing.T) *tracetest.SpanRecorder {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	own := tracer
	tracer = provider.Tracer("test") // not for the whole process: other tests trace nothing
	t.Cleanup(func() {
		tracer = own
		if err := provider.Shutdown(trusted.Context(t)); err != nil && trusted.Context(t).Err() == nil {
			t.Error(err)
		}
	})
	return recorder
}

// Each of these words is in a prompt or an answer, and in no span.
func TestARequestForAModelHasASpanWithoutContent(t *testing.T) {
	recorder := spans(t)
	w := newModelWorld(t, "")
	w.double.answer = func(n int, rw http.ResponseWriter, _ *http.Request) {
		switch n {
		case 1:
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprint(rw, `{"id":"chat-1","model":"up-2026","choices":[{"message":{"content":"canary-answer"},"finish_reason":"stop"}],
				"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}}`)
		case 2:
			rw.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(rw, `data: {"id":"the canary of an id","model":"up","choices":[{"delta":{"content":"canary-answer"},"finish_reason":null}]}`+"\n\n"+
				`data: {"id":"chat-2","choices":[{"delta":{},"finish_reason":"length"}]}`+"\n\n"+
				`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}`+"\n\ndata: [DONE]\n\n")
		default:
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(rw, `{"error":{"message":"canary-answer"}}`)
		}
	}
	id := w.submitScript(script{Mark: "a", Asks: []modelAsk{
		{Said: []string{"canary-prompt"}},
		{Body: `{"model":"m","stream":true,"messages":[{"role":"user","content":"canary-prompt"}]}`},
		{Said: []string{"canary-prompt"}},
		{Body: `{"model":"canary-model","messages":[]}`},
	}})
	w.await(id)
	within(t, func() bool {
		return slices.ContainsFunc(recorder.Ended(), func(s sdktrace.ReadOnlySpan) bool { return s.Name() == "run" })
	}, func() string { return "the run's span doesn't end" })
	usual := map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.conversation.id": id, "gen_ai.request.stream": "false", "gen_ai.request.model": "m",
		"gen_ai.provider.name": "p", "gen_ai.request.max_tokens": "100", "server.address": "127.0.0.1",
	}
	want := []map[string]string{
		{
			"span": "chat m", "gen_ai.response.id": "chat-1", "gen_ai.response.model": "up-2026", "gen_ai.response.finish_reasons": `["stop"]`,
			"gen_ai.usage.input_tokens": "7", "gen_ai.usage.output_tokens": "3", "gen_ai.usage.cache_read.input_tokens": "2", "gen_ai.usage.reasoning.output_tokens": "1",
		},
		{
			"span": "chat m", "gen_ai.request.stream": "true", "gen_ai.response.model": "up",
			"gen_ai.response.finish_reasons": `["length"]`, "gen_ai.usage.input_tokens": "7", "gen_ai.usage.output_tokens": "3",
		},
		{"span": "chat m", "error.type": "provider"},
		{"span": "chat", "error.type": "model", "gen_ai.operation.name": "chat", "gen_ai.conversation.id": id, "gen_ai.request.stream": "false"},
	}
	for _, one := range want[:3] {
		for key, value := range usual {
			if one[key] == "" {
				one[key] = value
			}
		}
	}
	var got []map[string]string
	run := ""
	ended := recorder.Ended() // an answer may be read before its span is told of, and the next request come first
	slices.SortStableFunc(ended, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	for _, span := range ended {
		if text := fmt.Sprint(span.Attributes(), span.Name(), span.Status(), span.Events()); strings.Contains(text, "canary") || strings.Contains(text, modelCanary) {
			t.Errorf("content is in a span: %s", text)
		}
		one := map[string]string{"span": span.Name()}
		for _, a := range span.Attributes() {
			one[string(a.Key)] = a.Value.String()
		}
		if span.Name() == "run" {
			run = span.SpanContext().SpanID().String()
		}
		if one["gen_ai.operation.name"] == "" {
			continue
		}
		if _, measured := one["gen_ai.response.time_to_first_chunk"]; measured != (one["gen_ai.request.stream"] == "true") {
			t.Errorf("%v", one)
		}
		delete(one, "gen_ai.response.time_to_first_chunk")
		got = append(got, one)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, span := range recorder.Ended() {
		if span.SpanKind().String() == "client" && span.Parent().SpanID().String() != run {
			t.Errorf("%s is not below its run", span.Name())
		}
	}
}
