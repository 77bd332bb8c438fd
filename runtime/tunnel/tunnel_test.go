package tunnel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// patience is how long anything may take before the test fails.
const patience = time.Minute

// harness is a tunnel with its far end, joined by a pipe.
type harness struct {
	*Listener
	socket  string
	measure func() Usage

	mu      sync.Mutex
	far     net.Conn      // of the far end that is there now
	gone    chan struct{} // closed when that one listens no more
	answers sync.WaitGroup
	dials   int
	stop    context.CancelFunc
	kept    chan struct{}
}

// newRig keeps a tunnel open to far ends that Answer makes, until the test's end.
func newRig(t *testing.T) *harness {
	t.Helper()
	dir, err := os.MkdirTemp("", "tunnel") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	l := New(Options{Frame: patience, Answer: patience})
	r := &harness{Listener: l, socket: filepath.Join(dir, "s"), kept: make(chan struct{}), measure: func() Usage { return Usage{} }}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.kept)
		r.KeepOpen(ctx, r.dial)
	}()
	t.Cleanup(func() {
		r.end(t)
		r.answers.Wait()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return r
}

// end lets KeepOpen return.
func (r *harness) end(t *testing.T) {
	t.Helper()
	r.stop()
	within(t, "KeepOpen returns", r.kept)
}

func (r *harness) dial(context.Context) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dials++
	gone := make(chan struct{})
	r.far, r.gone = far, gone
	r.answers.Go(func() {
		defer close(gone)
		_ = Answer(far, r.socket, func() Usage { return r.measure() })
	})
	return near, nil
}

// die ends the far end that is there now. The next one begins when nobody can reach it any more, as
// after the end of a process.
func (r *harness) die() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.far.Close()
	<-r.gone
}

func (r *harness) dialled() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dials
}

// serve answers HTTP on the tunnel until the test's end.
func (r *harness) serve(t *testing.T, handler http.HandlerFunc) {
	t.Helper()
	server := &http.Server{Handler: handler}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(r.Listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		within(t, "Serve returns", served)
	})
}

// client dials the far end's socket.
func (r *harness) client(t *testing.T) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", r.socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// connect waits for the far end's socket.
func (r *harness) connect(t *testing.T) *net.UnixConn {
	t.Helper()
	var conn net.Conn
	testkit.Eventually(t, "the far end listens", func() (ok bool) {
		c, err := net.Dial("unix", r.socket)
		conn = c
		return err == nil
	})
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn.(*net.UnixConn)
}

// up waits for both ends.
func (r *harness) up(t *testing.T) {
	t.Helper()
	_ = r.connect(t).Close()
	testkit.Eventually(t, "the near end knows of the far one", func() bool { return r.session.Load() != nil })
}

func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("never happened: " + what)
	}
}

func TestHTTPOverATunnel(t *testing.T) {
	t.Run("a hundred requests at once get through sixty-four places", func(t *testing.T) {
		r := newRig(t)
		r.serve(t, func(w http.ResponseWriter, req *http.Request) { _, _ = io.Copy(w, req.Body) })
		r.up(t)
		var all sync.WaitGroup
		for i := range 100 {
			client := r.client(t)
			client.Transport.(*http.Transport).DisableKeepAlives = true // or 36 would wait for who has been served
			all.Go(func() {
				said := fmt.Sprintf("request %d", i)
				resp, err := client.Post("http://tunnel/", "text/plain", strings.NewReader(said))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if heard, err := io.ReadAll(resp.Body); err != nil || string(heard) != said {
					t.Errorf("%q, %v", heard, err)
				}
			})
		}
		all.Wait()
		if n := r.dialled(); n != 1 {
			t.Errorf("%d far ends were started", n)
		}
	})
	t.Run("no more than sixty-four are under way", func(t *testing.T) {
		r := newRig(t)
		arrived, goOn := make(chan struct{}, 100), make(chan struct{})
		r.serve(t, func(http.ResponseWriter, *http.Request) {
			arrived <- struct{}{}
			<-goOn
		})
		r.up(t)
		var all sync.WaitGroup
		for range 100 {
			client := r.client(t)
			client.Transport.(*http.Transport).DisableKeepAlives = true
			all.Go(func() {
				resp, err := client.Get("http://tunnel/")
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			})
		}
		testkit.Eventually(t, "sixty-four arrive", func() bool { return len(arrived) >= maxConns })
		// The connection of before may still be ending.
		testkit.Eventually(t, "no more are under way", func() bool { return r.session.Load().NumStreams() <= maxConns })
		close(goOn)
		all.Wait()
		if len(arrived) != 100 {
			t.Errorf("%d arrived", len(arrived))
		}
	})
	t.Run("large bodies arrive whole both ways", func(t *testing.T) {
		r := newRig(t)
		r.serve(t, func(w http.ResponseWriter, req *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = io.Copy(w, req.Body)
		})
		r.up(t)
		body := bytes.Repeat([]byte("0123456789abcdef\x00\xff"), 1<<20)
		resp, err := r.client(t).Post("http://tunnel/", "application/octet-stream", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		heard, err := io.ReadAll(resp.Body)
		if err != nil || sha256.Sum256(heard) != sha256.Sum256(body) {
			t.Errorf("%d of %d bytes, %v", len(heard), len(body), err)
		}
	})
	t.Run("a client that goes away ends the request's context", func(t *testing.T) {
		r := newRig(t)
		begun, gone := make(chan struct{}), make(chan struct{})
		r.serve(t, func(_ http.ResponseWriter, req *http.Request) {
			close(begun)
			<-req.Context().Done()
			close(gone)
		})
		conn := r.connect(t)
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: tunnel\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		within(t, "the request arrives", begun)
		_ = conn.Close()
		within(t, "its context ends", gone)
	})
}

func TestConnectionsOverATunnel(t *testing.T) {
	t.Run("what ends with CloseWrite is answered afterwards", func(t *testing.T) {
		r := newRig(t)
		conn := r.connect(t)
		if _, err := io.WriteString(conn, "a question"); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		near := accept(t, r.Listener)
		asked, err := io.ReadAll(near)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := near.Write(append([]byte("re: "), asked...)); err != nil {
			t.Fatal(err)
		}
		if err := near.Close(); err != nil {
			t.Fatal(err)
		}
		if heard, err := io.ReadAll(conn); err != nil || string(heard) != "re: a question" {
			t.Errorf("%q, %v", heard, err)
		}
	})
	t.Run("who doesn't read holds nobody else up", func(t *testing.T) {
		r := newRig(t)
		deaf := r.connect(t)
		stalled := accept(t, r.Listener)
		var writing sync.WaitGroup
		writing.Go(func() { _, _ = stalled.Write(make([]byte, 8<<20)) }) // more than all buffers
		mute := r.connect(t)
		unread := accept(t, r.Listener)
		writing.Go(func() { _, _ = mute.Write(make([]byte, 8<<20)) })

		conn := r.connect(t)
		near := accept(t, r.Listener)
		if _, err := conn.Write([]byte("there")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(near, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		if _, err := near.Write([]byte("back")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		_, _, _ = deaf.Close(), mute.Close(), unread.Close()
		r.end(t)
		writing.Wait()
	})
	t.Run("a far end that takes over listens at the same place", func(t *testing.T) {
		r := newRig(t)
		for n := 1; n <= 3; n++ {
			conn := r.connect(t)
			near := accept(t, r.Listener)
			if _, err := near.Write([]byte{byte(n)}); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			r.die()
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				t.Error("the old far end's connection goes on")
			}
			if _, err := near.Read(make([]byte, 1)); err == nil {
				t.Error("the near end of it goes on")
			}
			testkit.Eventually(t, "another far end is started", func() bool { return r.dialled() > n })
		}
	})
	t.Run("a far end that dies before its connection was taken is replaced", func(t *testing.T) {
		r := newRig(t)
		r.connect(t)
		testkit.Eventually(t, "the connection waits", func() bool { s := r.session.Load(); return s != nil && s.NumStreams() == 1 })
		r.die()
		testkit.Eventually(t, "another far end is started", func() bool { return r.dialled() > 1 })
	})
	t.Run("after Close nobody is accepted", func(t *testing.T) {
		r := newRig(t)
		r.up(t)
		_ = accept(t, r.Listener)
		for range 2 {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := r.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v", err)
		}
		if n, err := r.connect(t).Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%d, %v", n, err)
		}
	})
	t.Run("the end of the context ends connections that are under way", func(t *testing.T) {
		r := newRig(t)
		conn := r.connect(t)
		near := accept(t, r.Listener)
		r.end(t)
		if _, err := near.Read(make([]byte, 1)); err == nil {
			t.Error("the near end goes on")
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("the far end goes on")
		}
	})
	t.Run("a dial that fails is done again", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		dials, kept := make(chan struct{}, 10), make(chan struct{})
		go func() {
			defer close(kept)
			New(Options{}).KeepOpen(ctx, func(context.Context) (io.ReadWriteCloser, error) {
				select {
				case dials <- struct{}{}:
				default:
				}
				return nil, io.ErrClosedPipe
			})
		}()
		within(t, "a dial", dials)
		within(t, "another", dials)
		stop()
		within(t, "KeepOpen returns", kept)
	})
}

func accept(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	accepted := make(chan net.Conn, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			accepted <- conn
		}
	}()
	select {
	case conn := <-accepted:
		_ = conn.SetDeadline(time.Now().Add(patience))
		return conn
	case <-time.After(patience):
		t.Fatal("no connection came")
		return nil
	}
}
