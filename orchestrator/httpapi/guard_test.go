package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/protocol/agents"
)

func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *Options) {
		o.Listen, o.Hosts, o.Origins = "192.0.2.1:7070", []string{"aod.example", "Other.example:9"}, []string{"https://ui.example"}
	})
	cases := []struct {
		name, header string
		status       int
	}{
		{"the address itself", "X: y", 200},
		{"localhost with any port", "Host: LOCALHOST:1", 200},
		{"IPv6 loopback", "Host: [::1]:7070", 200},
		{"another loopback address", "Host: 127.9.9.9", 200},
		{"the listen address", "Host: 192.0.2.1:7070", 200},
		{"the listen address with another port", "Host: 192.0.2.1:1", 403},
		{"a name of ours with any port", "Host: AOD.example.:81", 200},
		{"a name with its port", "Host: other.example:9", 200},
		{"a name with another port", "Host: other.example:10", 403},
		{"a foreign name", "Host: evil.example", 403},
		{"a name that begins like ours", "Host: localhost.evil.example", 403},
		{"an address in a name", "Host: 127.0.0.1.evil.example:80", 403},
		{"a foreign origin", "Origin: https://evil.example", 403},
		{"no origin at all", "Origin: null", 403},
		{"an origin with another scheme", "Origin: http://ui.example", 403},
		{"an origin of ours", "Origin: https://ui.example", 200},
		{"no token", "Authorization: -", 401},
		{"another token", "Authorization: Bearer s3cret-toke", 401},
		{"another scheme", "Authorization: Basic " + token, 401},
		{"the token in lower-case clothes", "Authorization: bearer " + token, 200},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := s.do("GET", "/v1/units", "", c.header).wants(t, c.status)
			if a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v", a.Header)
			}
			if (c.status == 401) != (a.Header.Get("Www-Authenticate") != "") {
				t.Errorf("headers %v", a.Header)
			}
		})
	}
}

func TestNothingButHealthIsAnsweredWithoutTheToken(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	health := []string{"/health", "/healthz", "/readyz", "/openapi.json", "/v1/login"}
	asked := 0
	for _, r := range newHandlers(&orchestrator.Service{}, Options{}).table() {
		if slices.Contains(health, r.path) {
			continue
		}
		asked++
		a := s.do(r.method, r.path, "{}", "Authorization: -")
		if a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s: %d %s", r.method, r.path, a.StatusCode, a.body)
		}
	}
	for _, pattern := range agents.Patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		asked++
		if a := s.do(method, path, "{}", "Authorization: -"); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", pattern, a.StatusCode, a.body)
		}
	}
	if asked < 25 {
		t.Errorf("%d routes", asked)
	}
}

func TestAForeignPageIsRefusedBeforeItsTokenIsLookedAt(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	a := s.do("POST", "/v1/runs", `{"unit":"actor"}`, "Origin: https://evil.example", "Authorization: -").wants(t, 403)
	if a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("CORS for everybody")
	}
	s.do("OPTIONS", "/v1/runs", "", "Origin: https://evil.example", "Access-Control-Request-Method: POST", "Authorization: -").wants(t, 403)
}

func TestAPageOfOursMayAskFirst(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *Options) { o.Origins = []string{"https://ui.example"} })
	a := s.do("OPTIONS", "/v1/runs", "", "Origin: https://ui.example", "Access-Control-Request-Method: POST", "Authorization: -")
	if a.StatusCode != http.StatusNoContent || a.Header.Get("Access-Control-Allow-Origin") != "https://ui.example" || a.Header.Get("Vary") != "Origin" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	s.do("GET", "/v1/runs", "", "Origin: https://ui.example", "Authorization: -").wants(t, 401)
}

func TestAddressesAndMethodsThatAreNotThere(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.do("GET", "/v1/nothing", "", "Authorization: -").wants(t, 401)
	s.do("GET", "/v1/nothing", "").wants(t, 404)
	for _, id := range []string{"x", "..", "%2e%2e", "..%2f..%2fetc", "00000000-0000-7000-8000-00000000000G", "00000000-0000-7000-8000-000000000000%00"} {
		s.do("GET", "/v1/runs/"+id, "").wants(t, 404)
	}
	s.do("GET", "/v1/runs/00000000-0000-7000-8000-000000000000", "").wants(t, 404)
	s.do("GET", "/v1/units/%2e%2e%2fx", "").wants(t, 404)
	for path, allow := range map[string]string{"/v1/runs": "GET, HEAD, POST", "/execute": "POST", "/v1/units/actor": "DELETE, GET, HEAD, PUT"} {
		a := s.do("PATCH", path, "").wants(t, 405)
		for method := range strings.SplitSeq(allow, ", ") {
			if !strings.Contains(a.Header.Get("Allow"), method) {
				t.Errorf("%s allows %q", path, a.Header.Get("Allow"))
			}
		}
	}
	s.do("BREW", "/v1/runs", "").wants(t, 405)
	if a := s.do("HEAD", "/v1/units", ""); a.StatusCode != http.StatusOK || a.body != "" || a.ContentLength <= 0 {
		t.Errorf("HEAD: %d %q", a.StatusCode, a.body)
	}
}

func TestOptionsThatWouldObeyAnybody(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]Options{
		"no token":             {},
		"a token that is idle": {Token: "x", NoAuth: true},
		"a limit below zero":   {Token: "x", UploadBytes: -1},
	} {
		if _, err := New(nil, opts); !fault.Is(err, fault.Input) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := newServer(t, func(o *Options) { o.Token, o.NoAuth = "", true })
	s.do("GET", "/v1/units", "", "Authorization: -").wants(t, 200)
}

// raw sends bytes as they are and returns the answer's status and body.
func (s *server) raw(request string) (status int, text string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must(s.t, err)
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, request) }() // the server may answer before it has read all
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(s.t, err)
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

func TestRequestsThatNoClientWrites(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	auth := "Authorization: Bearer " + token + "\r\n"
	cases := []struct {
		name, request string
		status        int
	}{
		{"a megabyte of headers", "GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", 431},
		{"no Host", "GET /healthz HTTP/1.0\r\n\r\n", 403},
		{"two Hosts", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n", 400},
		{"a foreign absolute address", "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 403},
		{"NUL in the path", "GET /v1/runs/\x00 HTTP/1.1\r\nHost: localhost\r\n" + auth + "\r\n", 400},
		{"a method out of thin air", "<SCRIPT> /v1/runs HTTP/1.1\r\nHost: localhost\r\n" + auth + "\r\n", 400},
		{"a body that is refused unread", fmt.Sprintf("POST /v1/runs HTTP/1.1\r\nHost: evil\r\nContent-Length: %d\r\n\r\n", 1<<40), 403},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if status, body := s.raw(c.request); status != c.status {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}
