package httpapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator"
)

// half begins a request with a body that doesn't come to its end.
func (s *server) half(path string, length int, headers ...string) {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	must(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	go func() { // it ends when one of both closes the connection
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n%s\r\n\r\n",
			path, strings.TrimPrefix(s.url, "http://"), token, length+1, strings.Join(append(headers, "X-Test: y"), "\r\n"))
		_, _ = io.CopyN(conn, blanks{}, int64(length))
	}()
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Clients that send bodies and don't end them have their share of memory; another client is served.
func TestHalfBodiesAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 8 << 20
	for path, headers := range map[string][]string{
		"/mcp":             {mcpTakes, "Mcp-Protocol-Version: 2026-07-28"},
		"/execute":         nil,
		"/agents/run/sync": nil,
	} {
		t.Run(path, func(t *testing.T) {
			memory := bytegate.New(limit)
			s := newServer(t, func(o *Options) { o.Memory, o.PayloadBytes = memory, 16<<20 })
			for range 12 {
				s.half(path, 1<<20, headers...)
			}
			testkit.Eventually(t, "the client has its share", func() bool { return memory.Held() > limit/4 })
			answer := s.do("POST", path, strings.Repeat(" ", 5<<20), append(headers, "Content-Type: application/json")...)
			if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || !strings.Contains(answer.body, "memory") {
				t.Errorf("%s %s", answer.Status, answer.body)
			}
			if held := memory.Held(); held > limit/2 {
				t.Errorf("%d bytes are held", held)
			}
			if err := memory.Acquire("token another", 1<<20); err != nil {
				t.Errorf("another client: %v", err)
			}
			memory.Release("token another", 1<<20)
		})
	}
}

// What goes into files holds no memory, however much it is.
func TestUploadsHoldNoMemory(t *testing.T) {
	t.Parallel()
	memory := bytegate.New(1 << 20)
	s := newServer(t, func(o *Options) { o.Memory = memory })
	form := "--x\r\nContent-Disposition: form-data; name=\"unit\"\r\n\r\nactor\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n" +
		strings.Repeat("a", 8<<20) + "\r\n--x--\r\n"
	answer := s.do("POST", "/v1/runs", form, "Content-Type: multipart/form-data; boundary=x")
	if answer.StatusCode == http.StatusServiceUnavailable || strings.Contains(answer.body, "memory") {
		t.Errorf("%s %s", answer.Status, answer.body)
	}
	if held := memory.Held(); held != 0 {
		t.Errorf("%d bytes are held after it", held)
	}
}

func TestATokenCountsForItself(t *testing.T) {
	t.Parallel()
	memory := bytegate.New(0)
	a, err := New(&orchestrator.Service{}, Options{Token: token, Memory: memory})
	must(t, err)
	ctx, err := a.Authorize(access.WithGrant(trusted.Context(t), access.Grant{Name: "other", Scopes: []access.Scope{access.Read, access.Run}}), token, "")
	must(t, err)
	if holder := bytegate.HolderOf(ctx); holder != "token " {
		t.Errorf("it counts for %q", holder)
	}
	if _, err := bytegate.Hold(ctx, bytegate.DefaultBytes); !fault.Is(err, fault.Unavailable) {
		t.Errorf("there is no bound: %v", err)
	}
}
