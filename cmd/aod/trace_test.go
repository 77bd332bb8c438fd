package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/agent-on-demand/aod/client"
)

// spans are what a server has exported, by id.
type spans struct {
	mu   sync.Mutex
	byID map[string]*otlp.Span
}

// newCollector returns an OpenTelemetry collector and its address.
func newCollector(t *testing.T) (*spans, string) {
	s := &spans{byID: map[string]*otlp.Span{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(raw, &sent); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					s.byID[hex.EncodeToString(span.SpanId)] = span
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return s, server.URL
}

func attributes(s *otlp.Span) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		if text := a.Value.GetStringValue(); text != "" {
			all[a.Key] = text
		} else {
			all[a.Key] = fmt.Sprint(a.Value.GetIntValue())
		}
	}
	return all
}

// runOf returns the span of a run.
func (s *spans) runOf(t *testing.T, id string) *otlp.Span {
	t.Helper()
	for _, span := range s.byID {
		if span.Name == "run" && attributes(span)["aod.run"] == id {
			return span
		}
	}
	t.Fatalf("run %s has no span among %d", id, len(s.byID))
	return nil
}

// below returns the names of the spans right below one, each once.
func (s *spans) below(parent *otlp.Span) (names []string) {
	for _, span := range s.byID {
		if string(span.ParentSpanId) == string(parent.SpanId) && !strings.HasPrefix(span.Name, "HTTP") {
			names = append(names, span.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestATraceIsTheTreeOfCalls(t *testing.T) {
	t.Parallel()
	collected, address := newCollector(t)
	s := newServer(t, "--log-format", "json")
	s.env = append(s.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+address)
	s.addCaller("link", linkScript)
	s.addCaller("broken", "exit 3")
	s.start()
	root := s.call("link", `{"n":2,"ticks":0}`)
	broken, asked := s.call("broken", `{}`), s.traced("broken", theirTrace)
	s.await(root)
	s.await(broken)
	s.await(asked)
	links, records := s.links(root), s.records()
	s.signal(syscall.SIGTERM) // its last spans leave with it
	s.exitCode()
	collected.mu.Lock()
	defer collected.mu.Unlock()
	if len(links) != 2 {
		t.Fatalf("links %q", links)
	}
	top, called := collected.runOf(t, links[0]), collected.runOf(t, links[1])
	if len(top.ParentSpanId) != 0 || string(called.ParentSpanId) != string(top.SpanId) {
		t.Errorf("the caller's span is below %x, that of the called run below %x instead of %x", top.ParentSpanId, called.ParentSpanId, top.SpanId)
	}
	for _, name := range []string{"queue", "build", "start", "wait", "collect"} {
		if below := collected.below(top); !slices.Contains(below, name) {
			t.Errorf("below a run is no span %q: %q", name, below)
		}
	}
	failed := collected.runOf(t, broken)
	if failed.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR || top.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("status of the failed run %v, of the other %v", failed.Status, top.Status)
	}
	if a := attributes(failed); a["aod.outcome"] != "capsule_error" || a["aod.error.kind"] != "capsule_error" || a["aod.attempt"] != "1" || a["aod.queue_ms"] == "" {
		t.Errorf("attributes of a failed run %v", a)
	}
	for id, span := range collected.byID {
		if len(span.ParentSpanId) == 0 && span.Name != "run" {
			t.Errorf("span %s %q is below nothing", id, span.Name)
		}
		if anyID.MatchString(span.Name) {
			t.Errorf("the name of a span has an id: %q", span.Name)
		}
	}
	traceOf := map[string]string{}
	for id, record := range records {
		traceOf[id] = hex.EncodeToString(collected.runOf(t, id).TraceId)
		if record.TraceID != traceOf[id] {
			t.Errorf("the record of %s has the trace %q, not %q", id, record.TraceID, traceOf[id])
		}
	}
	if traceOf[asked] != theirTrace || traceOf[links[1]] != traceOf[root] || traceOf[root] == traceOf[broken] {
		t.Errorf("traces %v", traceOf)
	}
	s.logsTraces(traceOf)
}

// anyID is a part of a name that tells one thing from others of its kind: of a container, a run or an image.
var anyID = regexp.MustCompile(`[0-9a-f]{12}|[0-9a-f]{8}-[0-9a-f]{4}`)

// theirTrace is the trace of a client.
const theirTrace = "0af7651916cd43dd8448eb211c80319c"

// traced has a run accepted for a client that has a trace.
func (s *server) traced(unit, trace string) string {
	s.t.Helper()
	record, err := s.client.Runs.Submit(s.t.Context(), client.Submission{Unit: unit, Input: json.RawMessage(`{}`), TraceParent: "00-" + trace + "-b7ad6b7169203331-01"})
	if err != nil || record.TraceID != trace {
		s.t.Fatalf("%q, %v", record.TraceID, err)
	}
	return record.ID
}

// logsTraces finds that lines about runs have their traces, and those about requests that of their client.
func (s *server) logsTraces(traceOf map[string]string) {
	s.t.Helper()
	ends, requests := 0, 0
	for text := range strings.Lines(s.log()) {
		var line struct{ Msg, Run, Trace string }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			s.t.Errorf("a line of the log isn't JSON: %s", text)
		}
		switch {
		case line.Msg == "run finished":
			ends++
			if line.Trace == "" || line.Trace != traceOf[line.Run] {
				s.t.Errorf("not of the trace %s: %s", traceOf[line.Run], text)
			}
		case line.Msg == "request" && line.Trace == theirTrace:
			requests++
		}
	}
	if ends != len(traceOf) || requests != 1 {
		s.t.Errorf("%d lines of ends, %d of requests in a trace", ends, requests)
	}
}
