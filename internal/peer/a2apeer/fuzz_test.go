package a2apeer_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// canned answers each request with the same bytes.
type canned struct {
	media string
	body  []byte
}

// RoundTrip implements http.RoundTripper.
func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {c.media}}, Body: io.NopCloser(bytes.NewReader(c.body))}, nil
}

// typed wants an error that the package promises.
func typed(t *testing.T, err error) {
	t.Helper()
	var broken *a2apeer.Violation
	var refused *a2apeer.Refusal
	if err != nil && !errors.As(err, &broken) && !errors.As(err, &refused) && !fault.Is(err, fault.Unavailable) {
		t.Fatalf("%T %v", err, err)
	}
}

// sound wants a task that keeps what the package promises.
func sound(t *testing.T, task a2apeer.Task) {
	t.Helper()
	if len(task.Artifacts) > a2apeer.MaxArtifacts || len(task.ID) > 256 || len(task.Words) > 5000 {
		t.Fatalf("%+v", task)
	}
}

// FuzzCard reads cards of any kind.
func FuzzCard(f *testing.F) {
	f.Add([]byte(`{"name":"n","supportedInterfaces":[{"url":"http://127.0.0.1/a","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":"t"}],"capabilities":{"streaming":true}}`))
	f.Add([]byte(`{"url":"http://127.0.0.1/","preferredTransport":"HTTP+JSON","protocolVersion":"0.3.0","additionalInterfaces":[{"url":"http://127.0.0.1/b","transport":"JSONRPC"}]}`))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		c, err := a2apeer.New(a2apeer.Options{URL: "http://127.0.0.1", Transport: canned{"application/json", raw}})
		if err != nil {
			t.Fatal(err)
		}
		card, err := c.Card(t.Context())
		typed(t, err)
		for _, i := range card.Interfaces {
			if _, err := c.At(i); err != nil {
				t.Fatalf("%+v: %v", i, err)
			}
		}
		if err == nil && len(card.Interfaces) == 0 {
			t.Fatal("a card without an interface")
		}
	})
}

// FuzzAnswer reads answers and streams of any kind, in each form of the protocol.
func FuzzAnswer(f *testing.F) {
	const working = `{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","timestamp":"2026-01-01T00:00:00Z","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"w"}]}},"artifacts":[{"artifactId":"a","parts":[{"data":{"n":1}},{"raw":"YQ==","filename":"f"},{"url":"http://127.0.0.1/f"}]}]}`
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","result":{"task":` + working + `}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","result":` + working + `}`))
	f.Add([]byte(`{"task":` + working + `}`))
	f.Add([]byte("data: {\"jsonrpc\":\"2.0\",\"result\":{\"task\":" + working + "}}\n\ndata: {\"jsonrpc\":\"2.0\",\"result\":{\"artifactUpdate\":{\"taskId\":\"t\",\"append\":true,\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"text\":\"x\"}]}}}}\n\n"))
	f.Add([]byte("data: {\"statusUpdate\":{\"taskId\":\"t\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\"}}}\n\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","result":{"kind":"task","id":"t","contextId":"c","status":{"state":"working"},"artifacts":[{"artifactId":"a","parts":[{"kind":"file","file":{"bytes":"YQ==","name":"f"}}]}]}}`))
	f.Add([]byte("data: {\"jsonrpc\":\"2.0\",\"result\":{\"kind\":\"status-update\",\"taskId\":\"t\",\"final\":true,\"status\":{\"state\":\"completed\"}}}\n\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","error":{"code":-32001,"message":"m","data":[{"@type":"x"}]}}`))
	f.Add([]byte(`{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"}}}`))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		for _, version := range []a2apeer.Version{a2apeer.V10, a2apeer.V03} {
			for _, binding := range []a2apeer.Binding{a2apeer.JSONRPC, a2apeer.HTTPJSON} {
				for _, media := range []string{"application/json", "text/event-stream"} {
					c, err := a2apeer.New(a2apeer.Options{URL: "http://127.0.0.1", Transport: canned{media, raw}})
					if err != nil {
						t.Fatal(err)
					}
					a, err := c.At(a2apeer.Interface{URL: "http://127.0.0.1", Binding: binding, Version: version})
					if err != nil {
						t.Fatal(err)
					}
					sent, err := a.Send(t.Context(), a2apeer.Message{ID: "m", Parts: []a2apeer.Part{a2apeer.TextPart("x")}})
					typed(t, err)
					sound(t, sent)
					looked, err := a.Get(t.Context(), "t")
					typed(t, err)
					if sound(t, looked); err == nil && looked.ID != "t" {
						t.Fatalf("%+v", looked)
					}
					streamed, err := a.Stream(t.Context(), a2apeer.Message{ID: "m"}, func(a2apeer.Task) error { return nil })
					typed(t, err)
					sound(t, streamed)
				}
			}
		}
	})
}
