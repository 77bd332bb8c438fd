package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// starting is a server that isn't there before the client's first pause, and writes its
// token when it is.
type starting struct {
	t       *testing.T
	socket  int // has the port from the start, so that nobody else takes it
	address string
	token   string // as it is written; "" before
	bodies  []string
}

func newStarting(t *testing.T) *starting {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	syscall.CloseOnExec(socket)
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return &starting{t: t, socket: socket, address: fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)}
}

// client makes a client whose nth pause starts the server.
func (s *starting) client(n int) *Client {
	s.t.Helper()
	c, err := New(Options{Server: "http://" + s.address, TokenFrom: func() (string, error) { return s.token, nil }})
	if err != nil {
		s.t.Fatal(err)
	}
	c.pause = func(context.Context, time.Duration) error {
		if n--; n == 0 {
			s.start()
		}
		return nil
	}
	return c
}

func (s *starting) start() {
	if err := syscall.Listen(s.socket, 16); err != nil {
		s.t.Fatal(err)
	}
	own, err := syscall.Dup(s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	file := os.NewFile(uintptr(own), "socket")
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(s)
	server.Listener = l
	server.Start()
	s.t.Cleanup(server.Close)
}

// ServeHTTP writes the token with the first request, as a server may that listens already.
func (s *starting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.token = "written"
	if r.Header.Get("Authorization") != "Bearer written" {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"type":"urn:aod:fault:unauthorized","title":"Unauthorized","status":401,"code":"unauthorized","detail":"no token","hint":"send a header"}`)
		return
	}
	raw, _ := io.ReadAll(r.Body)
	s.bodies = append(s.bodies, string(raw))
	_, _ = io.WriteString(w, `{"id":"`+strings.Repeat("0", 8)+`-0000-7000-8000-000000000000","units":[]}`)
}

func TestAServerThatIsStartingIsAwaited(t *testing.T) {
	s := newStarting(t)
	if _, err := s.client(startTries-1).Submit(t.Context(), Submission{Unit: "hello"}); err != nil {
		t.Error(err)
	}
	if len(s.bodies) != 1 || !strings.Contains(s.bodies[0], `"unit":"hello"`) {
		t.Errorf("it got %q", s.bodies)
	}
}

func TestAnUploadWaitsForItsServerToo(t *testing.T) {
	s := newStarting(t)
	c := s.client(2)
	s.token = "written"
	if _, _, err := c.PutUnit(t.Context(), "mine", bytes.NewReader([]byte("archive"))); err != nil {
		t.Error(err)
	}
	if len(s.bodies) != 1 || s.bodies[0] != "archive" {
		t.Errorf("it got %q", s.bodies)
	}
}

func TestAWrongTokenNamesTheFlag(t *testing.T) {
	s := newStarting(t)
	s.start()
	c, err := New(Options{Server: "http://" + s.address, Token: "another"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Units(t.Context())
	hint := fault.Public(err).Hint
	if !fault.Is(err, fault.Unauthorized) || !strings.Contains(hint, "--token-file") || strings.Contains(hint, "header") {
		t.Errorf("%v; %s", err, hint)
	}
}
