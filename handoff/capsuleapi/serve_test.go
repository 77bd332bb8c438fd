package capsuleapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/handofftest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// served is a world behind a real socket.
type served struct {
	*harness
	socket string
	stop   context.CancelFunc
	ended  chan error
}

func serve(t *testing.T) *served {
	t.Helper()
	w := newWorld(t)
	return serveAs(t, w, w.h)
}

func serveAs(t *testing.T, w *harness, handler http.Handler) *served {
	t.Helper()
	dir, err := os.MkdirTemp("", "aod") // t.TempDir is too long for a socket
	must(t, err)
	s := &served{harness: w, socket: filepath.Join(dir, "aod.sock"), ended: make(chan error, 1)}
	listener, err := net.Listen("unix", s.socket)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	go func() { s.ended <- Serve(ctx, listener, handler, slog.New(slog.NewJSONHandler(w.log, nil))) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-s.ended)
		must(t, os.RemoveAll(dir))
	})
	return s
}

func (s *served) dial() net.Conn {
	s.t.Helper()
	conn, err := net.Dial("unix", s.socket)
	must(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	must(s.t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	return conn
}

// raw sends bytes and returns the status and the body of the answer.
func (s *served) raw(text string) (int, string) {
	s.t.Helper()
	conn := s.dial()
	go func() { _, _ = io.WriteString(conn, text) }() // it ends when the test closes the connection
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if !errors.Is(err, syscall.ECONNRESET) { // a while after a refusal a server cuts off who still sends
		must(s.t, err)
	}
	return resp.StatusCode, string(body)
}

func post(body string) string {
	return fmt.Sprintf("POST /handoff HTTP/1.1\r\nHost: aod\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func TestHostileHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t)
	cases := []struct {
		name, request string
		status        int
	}{
		{"a call", post(`{"target":"callee"}`), 200},
		{"huge headers", "GET /run HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 100_000) + "\r\n\r\n", 431},
		{"many headers", "GET /run HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", 20_000) + "\r\n", 431},
		{"a huge address", "GET /" + strings.Repeat("x", 100_000) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		{"no HTTP", "\x16\x03\x01\x00\r\n\r\n", 400},
		{"a body without an end", "POST /handoff HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
			strings.Repeat("10000\r\n"+strings.Repeat(" ", 0x10000)+"\r\n", 40), 413},
		{"an address out of the tree", "GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", 404},
		{"our own absolute address", "GET http://127.0.0.1:7070/run HTTP/1.1\r\nHost: x\r\n\r\n", 200},
		{"an absolute address", "GET http://elsewhere/run HTTP/1.1\r\nHost: x\r\n\r\n", 404},
		{"a tunnel", "CONNECT elsewhere:443 HTTP/1.1\r\nHost: x\r\n\r\n", 404},
		{"an asterisk", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 200},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if status, body := s.raw(c.request); status != c.status {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

func TestAClientThatHangsUpEndsItsWait(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.runs.Hold = make(chan struct{})
	conn := s.dial()
	_, err := io.WriteString(conn, post(`{"target":"callee"}`))
	must(t, err)
	s.until(func() bool { return s.runs.Started() == 1 })
	must(t, conn.Close())
	s.until(func() bool { return len(s.h.requests) == 0 })
}

func TestAServerThatEndsAnswersThoseWhoWait(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.runs.Hold = make(chan struct{})
	conn := s.dial()
	_, err := io.WriteString(conn, post(`{"target":"callee"}`))
	must(t, err)
	s.until(func() bool { return s.runs.Started() == 1 && strings.Contains(s.log.String(), "handoff accepted") })
	s.stop()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "GET /handoff/"+idOf(100)) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var held []net.Conn
	for range maxConnections {
		held = append(held, s.dial())
	}
	refused := s.dial()
	if _, err := refused.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("it was not closed: %v", err)
	}
	must(t, held[0].Close())
	s.until(func() bool {
		conn, err := net.Dial("unix", s.socket)
		must(t, err)
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET /health HTTP/1.0\r\n\r\n") // it fails where it is refused
		raw, _ := io.ReadAll(conn)
		return strings.Contains(string(raw), "healthy")
	})
}

func (s *served) until(ok func() bool) {
	s.t.Helper()
	testkit.Eventually(s.t, "what the test waits for", ok)
}

// The capsule asks again after a 503, and takes anything else for its answer.
func TestWhateverTheServerEndsForIsNoAnswer(t *testing.T) {
	t.Parallel()
	h := NewHandler(handoff.Caller{Run: "r"}, &handofftest.Runs{}, handoff.Limits{}, nil)
	ctx, end := context.WithCancelCause(t.Context())
	cause := errors.New("handed over")
	end(cause)
	w := httptest.NewRecorder()
	h.responder.answer(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/handoff", nil), fmt.Errorf("accept: %w", cause))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
