package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
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
	broken := s.call("broken", `{}`)
	s.await(root)
	s.await(broken)
	links := s.links(root)
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
	}
	for line := range strings.Lines(s.log()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line of the log isn't JSON: %s", line)
		}
	}
}
