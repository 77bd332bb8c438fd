package a2a

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func TestABodyThatThereIsNoMemoryForIsRefusedForNow(t *testing.T) {
	w := newHarness(t, nil)
	server := New(w.fakeService, w.opts)
	for _, path := range []string{"/a2a/echo", "/a2a/echo/message:send"} {
		g := bytegate.New(1 << 20)
		body := `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"x":"` + strings.Repeat("x", 600<<10) + `"}}`
		r := httptest.NewRequestWithContext(trusted.Context(t), http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		in, r := httpwire.Receive(rec, r)
		in.Count(g, "me")
		server.ServeHTTP(rec, r)
		if rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" || !strings.Contains(rec.Body.String(), "request_memory") {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
		in.Done()
		if g.Held() != 0 {
			t.Errorf("%s: %d bytes are held in the end", path, g.Held())
		}
	}
}

func TestADecodedDocumentTakesMoreThanItsText(t *testing.T) {
	document := []byte(`{"a":[1,2],"b":3}`)
	size := int64(len(document))
	for name, c := range map[string]struct {
		call *call
		want int64
	}{
		"as it is":    {&call{}, size},
		"version 0.3": {&call{legacy: true}, size + 5*valueBytes},
		"gRPC":        {&call{grpc: true}, size + 5*valueBytes},
	} {
		if got := c.call.sizeOf(document); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
