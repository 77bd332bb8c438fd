package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestPausesGrowAndBeginAnew(t *testing.T) {
	var made []int64 // milliseconds
	c := &conn{pause: func(_ context.Context, d time.Duration) error {
		made = append(made, d.Milliseconds())
		return nil
	}}
	lost := errors.New("lost")
	r := c.newRetrier()
	for r.wait(t.Context(), lost) == nil {
	}
	if diff := cmp.Diff([]int64{100, 200, 400}, made); diff != "" {
		t.Error("a call:", diff)
	}
	made = nil
	r.renew()
	for r.wait(t.Context(), lost) == nil {
	}
	want := []int64{100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000, 5000, 5000}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error("a stream:", diff)
	}
}

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
	c.conn.pause = func(context.Context, time.Duration) error {
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
	if _, err := s.client(startTries-1).Runs.Submit(t.Context(), Submission{Unit: "hello"}); err != nil {
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
	if _, _, err := c.Units.Put(t.Context(), "mine", bytes.NewReader([]byte("archive"))); err != nil {
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
	_, err = c.Units.List(t.Context())
	hint := fault.Public(err).Hint
	if !fault.Is(err, fault.Unauthorized) || !strings.Contains(hint, "--token-file") || strings.Contains(hint, "header") {
		t.Errorf("%v; %s", err, hint)
	}
}

func FuzzWholeLine(f *testing.F) {
	f.Add([]byte("one\ntwo\r\nhalf"))
	f.Add([]byte("\n\n\r\n"))
	f.Add(bytes.Repeat([]byte("x"), 5000))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		end := bytes.LastIndexByte(raw, '\n') + 1
		var want [][]byte
		for line := range bytes.Lines(raw[:end]) {
			want = append(want, bytes.TrimSuffix(line[:len(line)-1], []byte("\r")))
		}
		lines := bufio.NewScanner(iotest.OneByteReader(bytes.NewReader(raw)))
		lines.Buffer(nil, maxLine)
		lines.Split(wholeLine)
		n := 0
		for ; lines.Scan(); n++ {
			if n >= len(want) || !bytes.Equal(lines.Bytes(), want[n]) {
				t.Fatalf("line %d is %q", n, lines.Bytes())
			}
		}
		if n != len(want) {
			t.Fatalf("%d lines, want %d", n, len(want))
		}
		if cut := end < len(raw); cut != errors.Is(lines.Err(), errCut) {
			t.Fatalf("half a line: %v, error %v", cut, lines.Err())
		}
	})
}
