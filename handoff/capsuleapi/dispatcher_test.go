package capsuleapi

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// unassigned is a sandbox behind a real socket that waits for the run of its world.
type unassigned struct {
	*served
	dispatcher *Dispatcher
}

func serveUnassigned(t *testing.T) *unassigned {
	t.Helper()
	w := newWorld(t)
	w.caller.Input = []byte(`{"n":1}`)
	w.renew()
	dispatcher := NewDispatcher(slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	return &unassigned{serveAs(t, w, dispatcher), dispatcher}
}

const askInvocation = "GET /invocation HTTP/1.1\r\nHost: aod\r\n\r\n"

// ask sends the request of a program that waits.
func (p *unassigned) ask() net.Conn {
	p.t.Helper()
	conn := p.dial()
	_, err := io.WriteString(conn, askInvocation)
	must(p.t, err)
	return conn
}

func (p *unassigned) answer(conn net.Conn) (int, string) {
	p.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(p.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(p.t, err)
	return resp.StatusCode, string(body)
}

func (p *unassigned) hasAsked() bool {
	select {
	case <-p.dispatcher.Waiting():
		return true
	default:
		return false
	}
}

func (p *unassigned) waiting(n int) {
	p.t.Helper()
	p.until(func() bool { return len(p.dispatcher.slots) == n })
}

func TestAProgramWaitsForItsRun(t *testing.T) {
	t.Parallel()
	p := serveUnassigned(t)
	if p.dispatcher.Live() {
		t.Error("nobody has asked")
	}
	conn := p.ask()
	p.until(p.hasAsked)
	if !p.dispatcher.Live() || p.h.Asked() {
		t.Error("it doesn't wait")
	}
	began := time.Now()
	p.dispatcher.Assign(p.h)
	status, body := p.answer(conn)
	if status != 200 || !strings.Contains(body, `"input":{"n":1}`) || !p.h.Asked() {
		t.Errorf("%d %s", status, body)
	}
	if took := time.Since(began); took > time.Minute { // 0.2 ms of an idle machine
		t.Errorf("the answer took %v", took)
	}
	p.waiting(0)
}

func TestAfterItsRunHasComeEverythingIsTheRuns(t *testing.T) {
	t.Parallel()
	p := serveUnassigned(t)
	first, second := p.ask(), p.ask()
	p.waiting(2)
	p.dispatcher.Assign(p.h)
	for _, conn := range []net.Conn{first, second, p.ask()} {
		if status, body := p.answer(conn); status != 200 {
			t.Errorf("%d %s", status, body)
		}
	}
	if status, body := p.raw(post(`{"target":"callee"}`)); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

func TestBeforeItsRunHasComeEverythingElseIsRefused(t *testing.T) {
	t.Parallel()
	p := serveUnassigned(t)
	if status, body := p.raw("GET /health HTTP/1.1\r\nHost: aod\r\n\r\n"); status != 200 || !strings.Contains(body, "healthy") {
		t.Errorf("%d %s", status, body)
	}
	for _, request := range []string{
		"GET /run HTTP/1.1\r\n", "GET /capsules HTTP/1.1\r\n", "POST /invocation HTTP/1.1\r\n", "HEAD /health HTTP/1.1\r\n", "GET /x HTTP/1.1\r\n",
		"GET //invocation HTTP/1.1\r\n", "GET /invocation/../run HTTP/1.1\r\n", "POST /invocation/result HTTP/1.1\r\n",
	} {
		conn := p.dial()
		_, err := io.WriteString(conn, request+"Host: aod\r\n\r\n")
		must(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: strings.Fields(request)[0]})
		must(t, err)
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%q: %d %v", request, resp.StatusCode, resp.Header)
		}
		must(t, resp.Body.Close())
	}
	if p.dispatcher.Live() || strings.Contains(p.log.String(), `"WARN"`) {
		t.Error(p.log)
	}
	rec := httptest.NewRecorder()
	p.dispatcher.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/run", http.NoBody))
	if body := answered[problem](t, rec, 503); body.Detail != "no run has claimed this sandbox yet" || !strings.Contains(body.Hint, "GET /invocation") {
		t.Errorf("%+v", body)
	}
}

func TestWorkIsNotGivenToAProgramThatHasGone(t *testing.T) {
	t.Parallel()
	p := serveUnassigned(t)
	conn, other := p.ask(), p.ask()
	p.waiting(2)
	must(t, conn.Close())
	p.waiting(1)
	if !p.dispatcher.Live() {
		t.Error("the other one waits")
	}
	must(t, other.Close())
	p.waiting(0)
	if p.dispatcher.Live() || !p.hasAsked() {
		t.Error("nobody waits")
	}
}

func TestARequestThatCouldHideItsEndDoesNotWait(t *testing.T) {
	t.Parallel()
	p := serveUnassigned(t)
	for _, rest := range []string{"Content-Length: 1\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"} {
		status, body := p.raw("GET /invocation HTTP/1.1\r\nHost: aod\r\n" + rest)
		if status != 400 || !strings.Contains(body, "body") {
			t.Errorf("%d %s", status, body)
		}
	}
}

func TestTheRequestsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	p := serveUnassigned(t)
	var waiting []net.Conn
	for range maxWaiting {
		waiting = append(waiting, p.ask())
	}
	p.waiting(maxWaiting)
	if status, body := p.raw(askInvocation); status != 503 || !strings.Contains(body, "8 requests") {
		t.Errorf("%d %s", status, body)
	}
	must(t, waiting[0].Close())
	p.waiting(maxWaiting - 1)
	late := p.ask()
	p.waiting(maxWaiting)
	p.dispatcher.Assign(p.h)
	if status, body := p.answer(late); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

func TestAServerThatEndsTellsAWaitingProgramToComeAgain(t *testing.T) {
	t.Parallel()
	p := serveUnassigned(t)
	conn := p.ask()
	p.waiting(1)
	p.stop()
	if status, body := p.answer(conn); status != 503 || !strings.Contains(body, "ask again") {
		t.Errorf("%d %s", status, body)
	}
}

// endedRequest posts a result to a server that is ending.
func endedRequest(t *testing.T) *http.Request {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	end()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/invocation/result", strings.NewReader(`{}`))
	r.Header.Set("Content-Type", "application/json")
	return r
}

func serveOne(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}
