package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// protocol is a handler that shows what it is asked for, and what it notes.
func protocol(w http.ResponseWriter, r *http.Request) {
	notes := httpwire.NotesOf(r.Context())
	notes.Run, notes.Attrs = "the-run", []slog.Attr{slog.String("tool", "adder")}
	switch {
	case strings.HasSuffix(r.URL.Path, "/panic"):
		panic("canary")
	case strings.HasSuffix(r.URL.Path, "/half"):
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic("canary")
	case strings.HasSuffix(r.URL.Path, "/fails"):
		notes.Report(errors.New("disk away"), false)
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, hasEnd := r.Context().Deadline()
	_, _ = io.WriteString(w, r.Method+" "+r.URL.Path+map[bool]string{true: " bounded"}[hasEnd])
}

func newMounted(t *testing.T) *server {
	return newServer(t, func(o *Options) {
		o.Origins = []string{"https://ui.example"}
		o.Mounts = []Mount{
			{Patterns: []string{"/other/", "POST /rpc/{name}/call"}, Handler: http.HandlerFunc(protocol)},
			{Patterns: []string{"GET /card"}, Handler: http.HandlerFunc(protocol), Open: true},
			{
				Patterns: []string{"GET /own"}, Handler: http.HandlerFunc(protocol),
				Refusal: func(p httpwire.Problem) any { return map[string]any{"refused": p.Code} },
			},
		}
	})
}

func TestAProtocolIsMounted(t *testing.T) {
	t.Parallel()
	s := newMounted(t)
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/other", "GET /other"},
		{"POST", "/other/", "POST /other/"},
		{"DELETE", "/other/a/b", "DELETE /other/a/b"},
		{"POST", "/rpc/x/call", "POST /rpc/x/call"},
		{"GET", "/card", "GET /card bounded"},
		{"HEAD", "/card", ""},
	} {
		a := s.do(c.method, c.path, "").wants(t, 200)
		if a.body != c.want || a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %q %v", c.method, c.path, a.body, a.Header)
		}
	}
	s.do("GET", "/rpc/x/call", "").wants(t, 405)
	s.do("GET", "/otherx", "").wants(t, 404)
	s.do("POST", "/rpc/x/y/call", "").wants(t, 404)
	for _, want := range []string{`"route":"/other/*"`, `"route":"/rpc/:name/call"`, `"run":"the-run","tool":"adder"`} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("no %s in %s", want, s.log)
		}
	}
}

func TestAProtocolIsBehindTheRulesOfTheServer(t *testing.T) {
	t.Parallel()
	s := newMounted(t)
	s.do("GET", "/other", "", "Authorization: -").wants(t, 401)
	s.do("GET", "/other", "", "Host: evil.example").wants(t, 403)
	s.do("GET", "/other", "", "Origin: https://evil.example").wants(t, 403)
	s.do("GET", "/card", "", "Authorization: -").wants(t, 200)
	s.do("GET", "/card", "", "Authorization: -", "Host: evil.example").wants(t, 403)
	if a := s.do("GET", "/other", "", "Origin: https://ui.example").wants(t, 200); a.Header.Get("Access-Control-Allow-Origin") != "https://ui.example" {
		t.Errorf("%v", a.Header)
	}
	if a := s.do("GET", "/own", "", "Authorization: -"); a.StatusCode != 401 || a.body != `{"refused":"unauthorized"}`+"\n" || a.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestWhatGoesWrongInAProtocolIsLoggedAndNotTold(t *testing.T) {
	t.Parallel()
	s := newMounted(t)
	if a := s.do("GET", "/other/panic", "").wants(t, 500); strings.Contains(a.body, "canary") || !strings.Contains(a.body, `"run":"the-run"`) {
		t.Errorf("%s", a.body)
	}
	s.do("GET", "/other/fails", "")
	resp, err := client.Do(s.request("GET", "/other/half", ""))
	must(t, err)
	defer resp.Body.Close()
	if raw, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("%q looks like a whole answer", raw)
	}
	text := s.log.String()
	for line := range strings.Lines(text) {
		if strings.Contains(line, "request failed") && !strings.Contains(line, `"run":"the-run"`) {
			t.Errorf("it doesn't say which run: %s", line)
		}
	}
	if strings.Count(text, `"panic: a value of type string"`) != 2 || !strings.Contains(text, "disk away") || strings.Contains(text, "canary") {
		t.Errorf("%s", text)
	}
}

func TestAMountsTokenMayStandInAHeaderOfItsOwn(t *testing.T) {
	t.Parallel()
	said := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("in")) })
	s := newServer(t, func(o *Options) {
		o.Mounts = []Mount{
			{Patterns: []string{"GET /other/{unit}"}, Handler: said, TokenHeader: "X-Key"},
			{Patterns: []string{"GET /plain/{unit}"}, Handler: said},
		}
	})
	bearer := s.request("GET", "/", "").Header.Get("Authorization")
	token := strings.TrimPrefix(bearer, "Bearer ")
	s.do("GET", "/other/x", "", "Authorization: -", "X-Key: "+token).wants(t, 200)
	s.do("GET", "/other/x", "", "X-Key: wrong").wants(t, 200) // the other one is good
	s.do("GET", "/other/x", "", "Authorization: -", "X-Key: wrong").wants(t, 401)
	s.do("GET", "/other/x", "", "Authorization: -").wants(t, 401)
	s.do("GET", "/plain/x", "", "Authorization: -", "X-Key: "+token).wants(t, 401)
	s.do("GET", "/v1/runs", "", "Authorization: -", "X-Key: "+token).wants(t, 401)
	ctx := context.Background()
	if _, err := s.api.Authorize(ctx, token, ""); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "wrong"} {
		if _, err := s.api.Authorize(ctx, bad, ""); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestTheStatusOfA2AIsMissingWhereItIsOff(t *testing.T) {
	t.Parallel()
	newServer(t, nil).do("GET", "/v1/a2a", "").wants(t, 404)
}

const (
	mcpHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	mcpTakes = "Accept: application/json, text/event-stream"
)

func TestASessionOfMCP(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	opened := s.do("POST", "/mcp", mcpHello, mcpTakes).wants(t, 200)
	session := "Mcp-Session-Id: " + opened.Header.Get("Mcp-Session-Id")
	if !strings.Contains(opened.body, `"name":"aod"`) || opened.Header.Get("Cache-Control") == "" {
		t.Errorf("%s %v", opened.body, opened.Header)
	}
	s.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, mcpTakes, session).wants(t, 202)
	if list := s.do("POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, mcpTakes, session).wants(t, 200); !strings.Contains(list.body, `"tools":[]`) {
		t.Error(list.body)
	}
	stream, err := http.DefaultClient.Do(s.request("GET", "/mcp", "", mcpTakes, session))
	must(t, err)
	if line, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil || line != ": ok\n" {
		t.Errorf("%q %v", line, err)
	}
	stream.Body.Close()
	s.do("DELETE", "/mcp", "", session).wants(t, 204)
	if after := s.do("POST", "/mcp", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, mcpTakes, session); after.StatusCode != 404 {
		t.Errorf("after its end: %d", after.StatusCode)
	}
}

func TestTheRulesOfTheAPIHoldForMCP(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *Options) { o.Origins = []string{"https://ui.example"} })
	s.do("POST", "/mcp", mcpHello, mcpTakes, "Authorization: -").wants(t, 401)
	s.do("POST", "/mcp", mcpHello, mcpTakes, "Authorization: Bearer wrong").wants(t, 401)
	s.do("POST", "/mcp", mcpHello, mcpTakes, "Host: evil.example").wants(t, 403)
	s.do("POST", "/mcp", mcpHello, mcpTakes, "Origin: https://evil.example").wants(t, 403)
	asked := s.do("OPTIONS", "/mcp", "", "Origin: https://ui.example", "Access-Control-Request-Method: DELETE").wants(t, 204)
	if !strings.Contains(asked.Header.Get("Access-Control-Allow-Headers"), "Mcp-Session-Id") || !strings.Contains(asked.Header.Get("Access-Control-Allow-Methods"), "DELETE") {
		t.Error(asked.Header)
	}
}
