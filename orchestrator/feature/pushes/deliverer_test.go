package pushes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func bodies(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("canary run %d", i+1))
	}
	return all
}

func TestAReceiverIsShownWhatItWants(t *testing.T) {
	h := newReceiver(t, nil)
	bearer, basic, token := h.at("near.example"), h.at("near.example"), h.at("near.example")
	bearer.Scheme, bearer.Credentials = "Bearer", "bearer-canary"
	basic.Scheme, basic.Credentials, basic.Token = "Basic", "YWRhOmNhbmFyeQ==", "both"
	token.Token = "token-canary"
	for name, c := range map[string]struct {
		to                   Target
		authorization, token string
	}{
		"bearer":          {bearer, "Bearer bearer-canary", ""},
		"basic and token": {basic, "Basic YWRhOmNhbmFyeQ==", "both"},
		"token":           {token, "", "token-canary"},
		"nothing":         {h.at("near.example"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(h.heard())
			w := newWorld(t, Options{}, plain, 1, c.to)
			w.await(1)
			r := h.requests[before]
			got := []string{r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.Header.Get("A2A-Notification-Token"), r.Header.Get("Idempotency-Key"), h.bodies[before]}
			if diff := cmp.Diff([]string{"POST", "/hook?secret-query", "text/canary", c.authorization, c.token, "run-1-1", "canary run 1"}, got); diff != "" {
				t.Error(diff)
			}
			testkit.Eventually(t, "the log tells of it", func() bool { return strings.Contains(w.log.String(), "delivery made") })
			if log := w.log.String(); strings.Contains(log, "canary") || strings.Contains(log, "secret") || strings.Contains(log, "example") {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
}

func TestDeliveriesComeInOrderAndAtLeastOnce(t *testing.T) {
	t.Run("of a receiver that fails now and then", func(t *testing.T) {
		h := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n%3 == 1 {
				w.WriteHeader([]int{500, 404, 302, 429}[n%4])
			}
		})
		w := newWorld(t, Options{}, plain, 10, h.at("near.example"))
		w.await(1)
		inOrder(t, h.heard(), 10)
	})
	t.Run("where the book breaks", func(t *testing.T) {
		h := newReceiver(t, nil)
		w := newWorld(t, Options{}, plain, 3, h.at("near.example"))
		w.mu.Lock()
		w.broken = errors.New("the disk is full")
		w.mu.Unlock()
		w.await(1)
		inOrder(t, h.heard(), 3)
	})
	t.Run("after news", func(t *testing.T) {
		h := newReceiver(t, nil)
		w := newWorld(t, Options{}, plain, 0, h.at("near.example"))
		w.mu.Lock()
		w.pushes[1].waiting = []int64{1, 2}
		w.mu.Unlock()
		w.news <- struct{}{}
		w.await(1)
		inOrder(t, h.heard(), 2)
	})
}

// inOrder holds what a receiver heard against the events from 1 to n: each comes after the one
// before it, and may come again until the next one does.
func inOrder(t *testing.T, heard []string, n int) {
	t.Helper()
	at := 0
	want := bodies(n)
	for i, body := range heard {
		switch {
		case at > 0 && body == want[at-1]:
		case at < n && body == want[at]:
			at++
		default:
			t.Fatalf("number %d is %q behind %d events", i+1, body, at)
		}
	}
	if at != n {
		t.Errorf("it heard %d events of %d", at, n)
	}
}

func TestNothingIsToldWithoutABody(t *testing.T) {
	h := newReceiver(t, nil)
	w := newWorld(t, Options{}, func(ctx context.Context, run string, e api.Event) ([]byte, string, error) {
		if e.Seq == 2 {
			return nil, "", nil
		}
		return plain(ctx, run, e)
	}, 3, h.at("near.example"))
	w.await(1)
	if diff := cmp.Diff([]string{"canary run 1", "canary run 3"}, h.heard()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Word{Delivered, Nothing, Delivered}, w.words(1)); diff != "" {
		t.Error(diff)
	}
}

// A push is given up as a whole: what comes after a gap would be out of order.
func TestAPushIsGivenUpAfterSoManyTries(t *testing.T) {
	refuses := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "body-canary")
	})
	dead := &receiver{Server: &httptest.Server{URL: "http://" + testkit.Nobody(t)}}
	unmade := func(context.Context, string, api.Event) ([]byte, string, error) {
		return nil, "", errors.New("it can't be made")
	}
	for name, c := range map[string]struct {
		to     Target
		render Render
		word   Word
	}{
		"of a dead receiver":                {dead.at("near.example"), plain, Unanswered},
		"of one that refuses":               {refuses.at("near.example"), plain, Refused},
		"of what can't be made":             {refuses.at("near.example"), unmade, Unmade},
		"of a name that nobody knows":       {refuses.at("nobody.example"), plain, Unanswered},
		"of an address that is no good now": {Target{URL: "::"}, plain, Barred},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{Tries: 4}, c.render, 3, c.to)
			w.await(1)
			if diff := cmp.Diff([]Word{c.word, c.word, c.word, c.word}, w.words(1)); diff != "" {
				t.Error(diff)
			}
			if !w.pushes[1].given {
				t.Error("it goes on")
			}
			testkit.Eventually(t, "the log tells of the end", func() bool { return strings.Contains(w.log.String(), "push given up") })
			if log := w.log.String(); strings.Contains(log, "canary") || strings.Contains(log, "example") {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
	if n := len(refuses.heard()); n != 4 {
		t.Errorf("one that refuses was asked %d times", n)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := newReceiver(t, nil)
	moves := newReceiver(t, func(n int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.at("other.example").URL, []int{301, 302, 303, 307, 308}[n%5])
	})
	to := moves.at("near.example")
	to.Scheme, to.Credentials, to.Token = "Bearer", "b", "t"
	w := newWorld(t, Options{Tries: 5}, plain, 1, to)
	w.await(1)
	if len(moves.heard()) != 5 || len(elsewhere.heard()) != 0 {
		t.Errorf("%d requests, and %d elsewhere", len(moves.heard()), len(elsewhere.heard()))
	}
}

func TestNoProxyIsAsked(t *testing.T) {
	proxy, h := newReceiver(t, nil), newReceiver(t, nil)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	w := newWorld(t, Options{}, plain, 1, h.at("near.example"))
	w.await(1)
	if len(h.heard()) != 1 || len(proxy.heard()) != 0 {
		t.Errorf("%d requests, and %d by the proxy", len(h.heard()), len(proxy.heard()))
	}
}

// A receiver that answers nothing has its time; one that answers without end is heard no longer
// than that, and what it says is dropped.
func TestASlowReceiverHoldsNobodyUp(t *testing.T) {
	release := make(chan struct{})
	var once sync.Once
	slow := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { once.Do(func() { close(release) }) })
	quick := newReceiver(t, nil)
	targets := make([]Target, 0, 41)
	for range 40 {
		targets = append(targets, slow.at("near.example"))
	}
	w := newWorld(t, Options{AtOnce: 6, PerHost: 4, Timeout: time.Minute}, plain, 1, append(targets, quick.at("other.example"))...)
	w.await(41)
	testkit.Eventually(t, "as many are asked as may be", func() bool { return len(slow.heard()) == 4 })
	once.Do(func() { close(release) })
	for push := range int64(40) {
		w.await(push + 1)
	}
}

func TestARequestHasItsTime(t *testing.T) {
	silent := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	endless := newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write(make([]byte, 4096))
		}
	})
	w := newWorld(t, Options{Tries: 2, Timeout: 200 * time.Millisecond}, plain, 1, silent.at("near.example"))
	w.await(1)
	if diff := cmp.Diff([]Word{Unanswered, Unanswered}, w.words(1)); diff != "" {
		t.Error(diff)
	}
	for timeout := 200 * time.Millisecond; ; timeout *= 4 { // the time may be up before the answer begins
		w := newWorld(t, Options{Tries: 1, Timeout: timeout}, plain, 1, endless.at("near.example"))
		w.await(1)
		diff := cmp.Diff([]Word{Delivered}, w.words(1))
		if diff == "" {
			return
		}
		if timeout > time.Minute {
			t.Fatal(diff)
		}
	}
}

// Whatever a name leads to when it is connected to counts, not what it led to before.
func TestNoPrivateAddressIsReached(t *testing.T) {
	h := newReceiver(t, nil)
	names := &resolver{known: map[string][]string{"moves.example": {"198.41.0.4", "127.0.0.1"}}}
	var targets []Target
	for i, addr := range []string{
		"127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1", "::",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "fe80::1", "fd00::1", "64:ff9b::7f00:1", "2002:7f00:1::1", "224.0.0.1",
	} {
		host := fmt.Sprintf("n%d.example", i)
		names.known[host] = []string{addr}
		targets = append(targets, h.at(host), h.at(strings.Trim(addr, "[]")))
	}
	door := egress.New(egress.Options{Resolver: names})
	moving := api.PushConfig{URL: strings.Replace(h.at("moves.example").URL, "http:", "https:", 1)}
	if _, err := TargetOf(t.Context(), moving, door); err != nil {
		t.Errorf("at first it is at a public address: %v", err)
	}
	targets = append(targets, h.at("moves.example"))
	w := newWorld(t, Options{Tries: 1, Door: door}, plain, 1, targets...)
	for i, to := range targets {
		push := int64(i + 1)
		w.await(push)
		if words := w.words(push); len(words) != 1 || words[0] != Barred {
			t.Errorf("%s: %v", to.Host, words)
		}
	}
	if n := len(h.heard()); n != 0 {
		t.Errorf("it was reached %d times", n)
	}
}

func TestTheTriesOfADeliveryTakeAboutAnHour(t *testing.T) {
	opts := Options{}.withDefaults()
	var all time.Duration
	for tries := 1; tries < opts.Tries; tries++ {
		d := opts.delay(tries)
		if least := opts.Delay << (tries - 1) * 4 / 5; d < least || d > least*3/2 {
			t.Errorf("after try %d it waits %s", tries, d)
		}
		all += d
	}
	if all < 45*time.Minute || all > 75*time.Minute {
		t.Errorf("all together wait %s", all)
	}
}

func TestWhatTheReceiverOfAWebhookMayDo(t *testing.T) {
	named := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	hooks := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader([]int{500, 200, 410}[n-1]) })
	door := func(hosts ...string) *egress.Door {
		known := map[string][]string{"near.example": {"127.0.0.1"}, "other.example": {"127.0.0.1"}}
		return egress.New(egress.Options{Resolver: &resolver{known: known}, Private: near(hosts...)})
	}
	opts := Options{Door: door("near.example"), Hooks: door("other.example"), Tries: 3}
	hook, barred := hooks.at("other.example"), hooks.at("near.example") // that is what clients of runs may name
	hook.Token, barred.Token = ofHook, ofHook
	w := newWorld(t, opts, plain, 3, named.at("near.example"), hook, barred)
	for push, want := range map[int64][]Word{1: {Refused, Refused, Refused}, 2: {Refused, Delivered, Gone}, 3: {Barred, Barred, Barred}} {
		w.await(push)
		if words := w.words(push); !slices.Equal(words, want) {
			t.Errorf("push %d: %q, want %q", push, words, want)
		}
	}
}

func TestTheTriesOfAWebhookTakeAboutThreeDays(t *testing.T) {
	opts := Options{}.withDefaults()
	var all time.Duration
	for tries := 1; tries < opts.hookTries; tries++ {
		d := opts.delay(tries)
		if d >= time.Hour {
			t.Errorf("after try %d it waits %s", tries, d)
		}
		all += d
	}
	if all < 60*time.Hour || all > 84*time.Hour {
		t.Errorf("all together wait %s", all)
	}
}
