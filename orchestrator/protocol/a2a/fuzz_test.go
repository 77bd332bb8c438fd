package a2a

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// fuzzed serves a request, and holds that the answer is one that a client can read.
func fuzzed(t *testing.T, server *Server, method, path, body string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Method, r.URL.Path, r.URL.RawPath = method, path, ""
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	if w.Code == http.StatusInternalServerError {
		t.Errorf("%s", w.Body)
	}
	if kind := w.Header().Get("Content-Type"); w.Body.Len() > 0 && kind != "application/json" && kind != "text/event-stream" && kind != "application/problem+json" {
		t.Errorf("%d %s %s", w.Code, kind, w.Body)
	}
}

// FuzzJSONRPC sends bytes of strangers to JSON-RPC.
func FuzzJSONRPC(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + parts10(`{"text":"x"}`) + `}`)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":` + parts10(`{"data":{"count":1}}`) + `}`)
	f.Add(`{"jsonrpc":"2.0","id":"a","method":"message/send","params":` + parts03(`{"kind":"text","text":"x"}`) + `}`)
	f.Add(`{"jsonrpc":"2.0","id":null,"method":"ListTasks","params":{"pageSize":0,"pageToken":"1"}}`)
	f.Add(`[{"jsonrpc":"2.0"}]`)
	fuzzbound.Run(f, func(t *testing.T, body string) {
		fuzzed(t, New(newFake(t), Options{NoAuth: true}), http.MethodPost, "/a2a/echo", body)
	})
}

// FuzzREST sends bytes of strangers to HTTP+JSON of both versions.
func FuzzREST(f *testing.F) {
	f.Add(http.MethodPost, "/message:send", parts10(`{"text":"x"}`))
	f.Add(http.MethodPost, "/message:stream", parts10(`{"raw":"eA=="}`))
	f.Add(http.MethodPost, "/v1/message:send", proto03(`{"text":"x"}`))
	f.Add(http.MethodGet, "/tasks", "")
	f.Add(http.MethodGet, "/v1/tasks/x:subscribe", "")
	f.Add(http.MethodDelete, "/tasks/x/pushNotificationConfigs/y", "")
	fuzzbound.Run(f, func(t *testing.T, method, path, body string) {
		fuzzed(t, New(newFake(t), Options{NoAuth: true}), method, "/a2a/echo/"+strings.TrimPrefix(path, "/"), body)
	})
}
