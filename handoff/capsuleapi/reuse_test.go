package capsuleapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// reused serves a sandbox whose run is one of several, and posts are kept.
func reused(t *testing.T, remaining int) *unassigned {
	t.Helper()
	p := serveUnassigned(t)
	p.caller.Result, p.caller.Reuse, p.caller.Remaining = p.path("results/posted.json"), true, remaining
	p.renew()
	return p
}

// following is the handler of the run that comes after.
func (p *unassigned) following(remaining int) *Handler {
	next := p.caller
	next.Run, next.Result, next.Remaining, next.Input = "00000000-0000-7000-8000-000000000002", p.path("results/second.json"), remaining, []byte(`{"n":2}`)
	return NewHandler(next, p.runs, p.limits, nil)
}

const postResult = "POST /invocation/result HTTP/1.1\r\nHost: aod\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

func (p *unassigned) reply(conn net.Conn) (*http.Response, string) {
	p.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(p.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(p.t, err)
	return resp, string(body)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAProgramServesOneRunAfterTheOther(t *testing.T) {
	t.Parallel()
	p := reused(t, 1)
	p.dispatcher.Assign(p.h)
	resp, _ := p.reply(p.ask())
	if resp.Header.Get("AOD-Remaining") != "1" || resp.Header.Get("AOD-Run") != p.caller.Run {
		t.Errorf("%v", resp.Header)
	}
	if isClosed(p.h.Posted()) {
		t.Error("nothing was posted")
	}
	if status, body := p.raw(postResult); status != 204 || !isClosed(p.h.Posted()) {
		t.Fatalf("%d %s", status, body)
	}
	again := p.ask()
	p.waiting(1)
	if status, body := p.raw("GET /run HTTP/1.1\r\nHost: aod\r\n\r\n"); status != 200 {
		t.Errorf("the run isn't over yet: %d %s", status, body)
	}
	must(t, p.dispatcher.Release(t.Context()))
	for _, request := range []string{"GET /run HTTP/1.1\r\nHost: aod\r\n\r\n", postResult, post(`{"target":"callee"}`)} {
		if status, body := p.raw(request); status != 503 {
			t.Errorf("between two runs: %d %s", status, body)
		}
	}
	p.waiting(1)
	p.dispatcher.Assign(p.following(0))
	resp, body := p.reply(again)
	if resp.StatusCode != 200 || !strings.Contains(body, `"n":2`) || resp.Header.Get("AOD-Remaining")+resp.Header.Get("AOD-Run") != "" {
		t.Errorf("%v %s", resp, body)
	}
}

func TestAProgramThatMayNotServeOthersGetsTheSameRunAgain(t *testing.T) {
	t.Parallel()
	p := serveUnassigned(t)
	p.caller.Result = p.path("results/posted.json")
	p.renew()
	p.dispatcher.Assign(p.h)
	for range 2 {
		resp, body := p.reply(p.ask())
		if resp.StatusCode != 200 || !strings.Contains(body, `"n":1`) || resp.Header.Get("AOD-Remaining")+resp.Header.Get("AOD-Run") != "" {
			t.Errorf("%v %s", resp, body)
		}
		if status, body := p.raw(postResult); status != 204 {
			t.Errorf("%d %s", status, body)
		}
	}
}

func TestAResultThatIsOfTheRunBeforeIsNotTaken(t *testing.T) {
	t.Parallel()
	p := reused(t, 1)
	p.dispatcher.Assign(p.h)
	if status, body := p.raw(postResult); status != 409 || isClosed(p.h.Posted()) {
		t.Errorf("%d %s", status, body)
	}
}

func TestAfterARestartAProgramThatHasPostedIsGivenNothing(t *testing.T) {
	t.Parallel()
	p := reused(t, 0)
	write(t, p.caller.Result, `{}`)
	p.renew()
	if !isClosed(p.h.Posted()) {
		t.Error("it was posted")
	}
	if rec := p.do("GET", "/invocation", ""); rec.Code != 503 || p.h.Asked() {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestARunIsReleasedWithAllOfItsRequests(t *testing.T) {
	t.Parallel()
	p := reused(t, 1)
	p.runs.Hold = make(chan struct{})
	p.dispatcher.Assign(p.h)
	status := make(chan int)
	go func() {
		got, _ := p.raw(post(`{"target":"callee"}`))
		status <- got
	}()
	p.until(func() bool { return p.runs.Started() == 1 })
	must(t, p.dispatcher.Release(t.Context()))
	if got := <-status; got != 503 {
		t.Errorf("a call that went on got %d", got)
	}
	must(t, p.dispatcher.Release(t.Context())) // there is none any more
}

func TestARequestThatDoesNotEndKeepsARunFromBeingReleased(t *testing.T) {
	t.Parallel()
	p := reused(t, 1)
	p.dispatcher.Assign(p.h)
	run, _ := p.dispatcher.enter(false)
	defer run.underway.Done()
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if err := p.dispatcher.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
