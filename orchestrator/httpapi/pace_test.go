package httpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/internal/certs"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// pipes is a listener whose connections are pipes, so that their time is a test's.
type pipes struct {
	come chan net.Conn
	gone chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.come:
		return conn, nil
	case <-p.gone:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { close(p.gone); return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// deaf is a client's connection that may stop to read. What it writes is taken at once, as a kernel would: TLS says
// that it closes, and holds a lock meanwhile.
type deaf struct {
	net.Conn
	stopped *atomic.Bool
	sent    chan []byte
	closed  chan struct{}
	once    sync.Once
}

func newDeaf(conn net.Conn, stopped *atomic.Bool) *deaf {
	d := &deaf{Conn: conn, stopped: stopped, sent: make(chan []byte, 1<<14), closed: make(chan struct{})}
	go func() {
		for {
			select {
			case p := <-d.sent:
				_, _ = conn.Write(p)
			case <-d.closed:
				return
			}
		}
	}()
	return d
}

func (d *deaf) Write(p []byte) (int, error) {
	d.sent <- bytes.Clone(p)
	return len(p), nil
}

func (d *deaf) Read(p []byte) (int, error) {
	if d.stopped.Load() {
		<-d.closed
		return 0, net.ErrClosed
	}
	return d.Conn.Read(p)
}

func (d *deaf) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Conn.Close()
}

// line is a client over one protocol with a server of one handler.
type line struct {
	http.Client
	major int
	dial  func() net.Conn // without TLS yet
	trust *tls.Config
	deaf  atomic.Bool // its connection is read no more
	conns atomic.Int32
}

// overBoth has a test done over HTTP/1.1 and HTTP/2, in a time of its own. The handler is behind all that paces it.
func overBoth(t *testing.T, handler func(t *testing.T) http.HandlerFunc, do func(t *testing.T, l *line)) {
	t.Helper()
	pair, err := certs.Self(filepath.Join(t.TempDir(), "tls"), []string{"localhost"})
	must(t, err)
	keeper, err := certs.Open(pair, func(certs.State) {})
	must(t, err)
	for name, major := range map[string]int{"http/1.1": 1, "h2": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &line{major: major}
				ctx, stop := context.WithCancel(t.Context())
				from, served := pipes{make(chan net.Conn), make(chan struct{})}, make(chan error, 1)
				server := httpwire.Server{
					Name: name, Handler: paced(handler(t)), HeaderBytes: headerBytes, Drain: time.Second,
					ErrorLog: slog.New(slog.DiscardHandler), Requests: httpwire.Outliving,
				}
				go func() { served <- server.Serve(ctx, tls.NewListener(from, keeper.Config(name))) }()
				trust, err := certs.Trust{Pins: func() ([]certs.Pin, error) { return keeper.State().Pins, nil }}.Config() // its dates aren't a bubble's
				must(t, err)
				trust.NextProtos, l.trust = []string{name}, trust
				l.dial = func() net.Conn {
					l.conns.Add(1)
					here, there := net.Pipe()
					from.come <- there
					return newDeaf(here, &l.deaf)
				}
				transport := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: major == 2, DialContext: func(context.Context, string, string) (net.Conn, error) {
					return l.dial(), nil
				}}
				l.Transport = transport
				do(t, l)
				transport.CloseIdleConnections()
				stop()
				must(t, <-served)
			})
		})
	}
}

func (l *line) do(t *testing.T, method string, body io.Reader) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://localhost/", body)
	must(t, err)
	response, err := l.Do(request)
	if err == nil && response.ProtoMajor != l.major {
		t.Errorf("it came by %s", response.Proto)
	}
	return response, err
}

func TestABodyHasAPaceOverBoth(t *testing.T) {
	trickle := func(part int, pause time.Duration) func(io.Writer) {
		return func(w io.Writer) {
			for began := time.Now(); time.Since(began) < 5*time.Minute; time.Sleep(pause) {
				if _, err := w.Write(make([]byte, part)); err != nil {
					return
				}
			}
		}
	}
	for name, c := range map[string]struct {
		send     func(io.Writer)
		streamed bool
		first    time.Duration // that the handler doesn't read
		cut      bool
	}{
		"silence":                      {send: func(io.Writer) {}, cut: true},
		"a byte from time to time":     {send: trickle(1, 12*time.Second), cut: true},
		"2 KiB a second":               {send: trickle(2048, time.Second), cut: true},
		"the same that is streamed":    {send: trickle(2048, time.Second), streamed: true},
		"a MiB in 20 seconds each":     {send: trickle(httpwire.PaceBytes/20, time.Second)},
		"a handler that begins late":   {send: func(w io.Writer) { _, _ = w.Write(make([]byte, 4096)) }, first: 10 * time.Minute},
		"late, and then it is waiting": {send: func(io.Writer) {}, first: 10 * time.Minute, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			var ended chan error
			overBoth(t, func(t *testing.T) http.HandlerFunc {
				ended = make(chan error, 1)
				return func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(c.first)
					began, from := time.Now(), io.Reader(r.Body)
					if c.streamed {
						from = httpwire.Streamed(r.Context(), from)
					}
					_, err := io.ReadFull(from, make([]byte, 1024)) // and it may pause between its reads
					if err == nil {
						time.Sleep(time.Minute)
						began = time.Now()
						_, err = io.Copy(io.Discard, from)
					}
					if took := time.Since(began); c.cut != (err != nil) || c.cut && took > httpwire.PaceTime+time.Second {
						t.Errorf("after %v: %v", took, err)
					}
					ended <- err
					w.WriteHeader(http.StatusNoContent)
				}
			}, func(t *testing.T, l *line) {
				body, sent := io.Pipe()
				var sending sync.WaitGroup
				sending.Go(func() {
					if c.send(sent); !c.cut {
						sent.Close()
					}
				})
				if response, err := l.do(t, http.MethodPost, body); err == nil {
					response.Body.Close()
				}
				<-ended
				body.Close()
				sending.Wait()
			})
		})
	}
}

// A handler that has nothing to say for long, and a client that reads, need one another's patience.
func TestAnAnswerMayTakeItsTime(t *testing.T) {
	overBoth(t, func(*testing.T) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				time.Sleep(time.Hour)
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
			}
			time.Sleep(time.Hour)
		}
	}, func(t *testing.T, l *line) {
		for range 2 { // also where the first one has left a deadline
			response, err := l.do(t, http.MethodPost, strings.NewReader("a body"))
			must(t, err)
			if text, err := io.ReadAll(response.Body); string(text) != "xxx" || err != nil {
				t.Errorf("%q %v", text, err)
			}
			response.Body.Close()
		}
		if l.conns.Load() != 1 {
			t.Errorf("it took %d connections", l.conns.Load())
		}
	})
}

func TestAReaderThatStopsIsCut(t *testing.T) {
	for name, stop := range map[string]func(*line){
		"an answer that isn't read":    func(*line) {},
		"a connection that isn't read": func(l *line) { l.deaf.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			var ended chan time.Duration
			overBoth(t, func(t *testing.T) http.HandlerFunc {
				ended = make(chan time.Duration, 1)
				return func(w http.ResponseWriter, _ *http.Request) {
					var err error
					last := time.Now()
					for err == nil && time.Since(last) < time.Hour {
						last = time.Now()
						_, err = w.Write(make([]byte, 64<<10))
					}
					ended <- time.Since(last)
				}
			}, func(t *testing.T, l *line) {
				response, err := l.do(t, http.MethodGet, http.NoBody)
				must(t, err)
				stop(l)
				if took := <-ended; took < idleTime || took > idleTime+6*time.Second { // TLS takes 5 to say that it closes
					t.Errorf("it is cut after %v", took)
				}
				response.Body.Close()
			})
		})
	}
}

// What one request is refused for is no matter for those beside it, and nobody waits for the rest of what is refused.
func TestARefusalEndsNoOtherAnswer(t *testing.T) {
	var release chan struct{}
	overBoth(t, func(*testing.T) http.HandlerFunc {
		release = make(chan struct{})
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			_ = http.NewResponseController(w).Flush()
			<-release
			_, _ = io.WriteString(w, "whole")
		}
	}, func(t *testing.T, l *line) {
		open, err := l.do(t, http.MethodGet, http.NoBody)
		must(t, err)
		for range 2 {
			began := time.Now()
			body, sent := io.Pipe()
			refused, err := l.do(t, http.MethodPost, body)
			must(t, err)
			if refused.StatusCode != http.StatusRequestEntityTooLarge || time.Since(began) > time.Second {
				t.Errorf("%s after %v", refused.Status, time.Since(began))
			}
			refused.Body.Close()
			sent.Close()
		}
		close(release)
		if text, err := io.ReadAll(open.Body); string(text) != "whole" || err != nil {
			t.Errorf("%q %v", text, err)
		}
		open.Body.Close()
		if got := l.conns.Load(); got != map[int]int32{1: 3, 2: 1}[l.major] {
			t.Errorf("it took %d connections", got)
		}
	})
}

// A client that begins and doesn't go on has no connection for long.
func TestABeginningHasToGoOn(t *testing.T) {
	const frames = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	const half = "\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82" // HEADERS without END_HEADERS
	for name, c := range map[string]struct {
		sent [3]string // by the version of HTTP
		most [3]time.Duration
	}{
		"nothing":        {most: [3]time.Duration{1: 10 * time.Second, 2: 10 * time.Second}},
		"half a header":  {[3]string{1: "GET / HTTP/1.1\r\nHost: x\r\n", 2: frames + half}, [3]time.Duration{1: 10 * time.Second, 2: 2 * time.Minute}},
		"half a preface": {[3]string{1: "GE", 2: frames[:10]}, [3]time.Duration{1: 10 * time.Second, 2: 10 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T) http.HandlerFunc {
				return func(http.ResponseWriter, *http.Request) { t.Error("a request came") }
			}, func(t *testing.T, l *line) {
				trust := l.trust.Clone()
				trust.ServerName = "localhost"
				conn := tls.Client(l.dial(), trust)
				_, err := io.WriteString(conn, c.sent[l.major])
				must(t, err)
				must(t, conn.HandshakeContext(t.Context()))
				began := time.Now()
				_, _ = io.Copy(io.Discard, conn)
				if took := time.Since(began); took > c.most[l.major]+2*time.Second {
					t.Errorf("it was open for %v", took)
				}
				_ = conn.Close()
			})
		})
	}
}

// The handshake, too, has its time.
func TestAHandshakeHasToCome(t *testing.T) {
	overBoth(t, func(*testing.T) http.HandlerFunc { return nil }, func(t *testing.T, l *line) {
		conn, began := l.dial(), time.Now()
		_, _ = io.Copy(io.Discard, conn)
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("it was open for %v", took)
		}
		_ = conn.Close()
	})
}
