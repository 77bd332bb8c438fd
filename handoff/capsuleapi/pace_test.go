package capsuleapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestManyRequestsTakeTheirTime(t *testing.T) {
	t.Parallel()
	const requests = paceBurst + paceRate // the last of them has its turn after a second
	for name, c := range map[string]struct {
		path  string
		reuse bool
	}{
		"over one connection":               {"/run", true},
		"each over a connection of its own": {"/run", false},
		"of a sandbox that waits for a run": {"/health", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var handler http.Handler = w.h
			if c.path == "/health" {
				handler = NewDispatcher(nil)
			}
			s := serveAs(t, w, handler)
			began := time.Now()
			conn, answers := s.connect(t)
			for range requests {
				if !c.reuse {
					conn.Close()
					conn, answers = s.connect(t)
				}
				s.ask(t, conn, answers, c.path)
			}
			if took := time.Since(began); took < 900*time.Millisecond {
				t.Errorf("%d requests took %v only", requests, took)
			}
		})
	}
}

func (s *served) connect(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("unix", s.socket)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn, bufio.NewReader(conn)
}

func (s *served) ask(t *testing.T, conn net.Conn, answers *bufio.Reader, path string) {
	t.Helper()
	_, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: aod\r\n\r\n")
	must(t, err)
	resp, err := http.ReadResponse(answers, nil)
	must(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	must(t, err)
	if resp.StatusCode == http.StatusTooManyRequests {
		t.Error("a request was refused")
	}
}

// Refusals cost as much as answers: who is refused again and again has ever fewer turns.
func TestRefusedRequestsTakeMoreTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		w.renew()
		ask := func(handler http.Handler, path string, requests int) time.Duration {
			began := time.Now()
			for range requests {
				rec := httptest.NewRecorder()
				handler.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
				if rec.Code == http.StatusTooManyRequests {
					t.Errorf("%s has no turn", path)
				}
			}
			return time.Since(began)
		}
		const burst = paceBurst / refusedCost
		for name, handler := range map[string]http.Handler{"of a run": w.h, "of a sandbox that waits for one": NewDispatcher(nil)} {
			if took := ask(handler, "/nothing", burst); took != 0 {
				t.Errorf("%s: the first refusals took %v", name, took)
			}
			if took := ask(handler, "/nothing", 40); took < 1900*time.Millisecond || took > 2100*time.Millisecond {
				t.Errorf("%s: 40 refusals took %v", name, took)
			}
			if took := ask(handler, "/health", 20); took > 200*time.Millisecond {
				t.Errorf("%s: 20 answers after them took %v", name, took)
			}
		}
	})
}

// A refusal that came at once would let a flood go on as it was. Those that have their turn at
// once come one after the other: together they may be more than maxRequests.
func TestRequestsBeyondAllPaceAreRefusedSlowly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		w.t = t
		w.renew()
		began := time.Now()
		var mu sync.Mutex
		var all sync.WaitGroup
		refused := 0
		ask := func() *httptest.ResponseRecorder {
			rec := httptest.NewRecorder()
			w.h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/run", http.NoBody))
			return rec
		}
		for range paceBurst {
			if rec := ask(); rec.Code != http.StatusOK {
				t.Fatalf("%d: %s", rec.Code, rec.Body)
			}
		}
		for range 3 * paceRate {
			all.Go(func() {
				rec := ask()
				if rec.Code == http.StatusOK {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				refused++
				if p := answered[problem](t, rec, http.StatusTooManyRequests); p.Code != "busy" || rec.Header().Get("Retry-After") == "" || time.Since(began) < paceWait {
					t.Errorf("%+v after %v", p, time.Since(began))
				}
			})
		}
		all.Wait()
		if refused < paceRate/2 || refused > paceRate {
			t.Errorf("%d requests were refused", refused)
		}
	})
}

// endless is a listener to which a program connects for ever, without asking anything.
type endless struct{ net.Listener }

func (endless) Accept() (net.Conn, error) {
	here, there := net.Pipe()
	there.Close()
	return here, nil
}

func TestConnectionsAloneTakeTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bounded{Listener: endless{}, slots: make(chan struct{}, 1), pace: newPace()}
		began := time.Now()
		for range paceBurst + paceRate {
			conn, err := b.Accept()
			must(t, err)
			must(t, conn.Close())
		}
		if took := time.Since(began); took < 900*time.Millisecond || took > 1100*time.Millisecond {
			t.Errorf("%d connections took %v", paceBurst+paceRate, took)
		}
	})
}
