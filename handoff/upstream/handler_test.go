package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheCallersCredentialsStayBehindAndTheKeyComesIn(t *testing.T) {
	b := newBench(t, ok, nil)
	header := http.Header{
		"Authorization": {"Bearer mine"}, "Cookie": {"a=mine"}, "Proxy-Authorization": {"mine"}, "X-Api-Key": {"mine"}, "Api-Key": {"mine"}, "X-Goog-Api-Key": {"mine"},
		"X-Auth-Token": {"mine"}, "X-Forwarded-For": {"mine"}, "X-Http-Method-Override": {"mine"}, "X-Original-Url": {"/mine"}, "Connection": {"X-Hop"}, "X-Hop": {"mine"},
		"Accept": {"text/plain"}, "Content-Type": {"text/x"}, "Idempotency-Key": {"kept"}, "User-Agent": {"me"},
	}
	response := b.do("POST", "/upstream/svc/v1/things?q=a%20b", header, strings.NewReader("body"))
	if got := read(t, response.Body); response.StatusCode != http.StatusOK || got != "ok" {
		t.Fatalf("%d %q", response.StatusCode, got)
	}
	asked := b.last()
	if asked.URL.Path != "/base/v1/things" || asked.URL.RawQuery != "q=a%20b" || "http://"+asked.Host != b.service.URL {
		t.Errorf("%s at %s", asked.URL, asked.Host)
	}
	if got := asked.Header.Get("Authorization"); got != "Bearer "+key {
		t.Errorf("Authorization: %q", got)
	}
	for name, values := range asked.Header {
		if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "mine") }) {
			t.Errorf("%s came through", name)
		}
	}
	for name, want := range map[string]string{"Accept": "text/plain", "Content-Type": "text/x", "Idempotency-Key": "kept", "User-Agent": "me", "Accept-Encoding": "identity"} {
		if got := asked.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if e := b.exchange(); e.Upstream != "svc" || e.Status != 200 || e.Rule != "" || e.BytesIn != 2 || e.BytesOut != 4 {
		t.Errorf("%+v", e)
	}
}

// Many servers read X_Forwarded_For as X-Forwarded-For: CGI and what came after it can't tell them apart.
func TestHeadersThatAServerTakesForOthersStayBehind(t *testing.T) {
	b := newBench(t, ok, func(u *Upstream, _ *Options) { u.Header, u.Scheme = "X-Weather-Id", "" })
	header := http.Header{"Idempotency-Key": {"kept"}, "Anthropic-Version": {"kept"}, "X-Units": {"kept"}, "If-None-Match": {"kept"}}
	for _, name := range []string{
		"X_Http_Method_Override", "x.http.method", "X_Original_Url", "X_Rewrite_Url", "X_Forwarded_For", "X-Forwarded", "Forwarded_For", "X_Real_Ip", "X_HOST",
		"Client-Ip", "X-Client-Ip", "True-Client-Ip", "X-Cluster-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip", "Wl-Proxy-Client-Ip", "X-Remote-Addr", "X-Remote-User",
		"X-Original-Host", "X-Http-Path-Override", "X-Ssl-Client-Cert", "X-Url-Scheme", "X_Auth_User", "Api_Key", "X_Weather_Id", "Proxy_Authorization",
		"Transfer_Encoding", "Content_Length",
	} {
		header[name] = []string{"mine"}
	}
	if response := b.do("GET", "/upstream/svc", header, nil); response.StatusCode != http.StatusOK {
		t.Fatal(response.StatusCode)
	}
	kept := 0
	for name, values := range b.last().Header {
		if slices.Contains(values, "mine") {
			t.Errorf("%s came through", name)
		}
		if slices.Contains(values, "kept") {
			kept++
		}
	}
	if kept != 4 {
		t.Errorf("%d of the others: %v", kept, b.last().Header)
	}
}

func TestAKeyGoesIntoItsOwnHeader(t *testing.T) {
	b := newBench(t, ok, func(u *Upstream, _ *Options) { u.Header, u.Scheme = "X-Weather-Id", "" })
	b.do("GET", "/upstream/svc", http.Header{"X-Weather-Id": {"mine"}, "Authorization": {"mine"}}, nil)
	if h := b.last().Header; h.Get("X-Weather-Id") != key || h.Get("Authorization") != "" || len(h.Values("X-Weather-Id")) != 1 {
		t.Errorf("%v", h)
	}
	if b.last().URL.Path != "/base" {
		t.Errorf("%s", b.last().URL)
	}
}

// A table of what is refused before anything is asked.
func TestWhatIsOnNoListIsRefused(t *testing.T) {
	b := newBench(t, ok, func(u *Upstream, _ *Options) { u.Methods, u.Paths = []string{"GET"}, []string{"/v1", "/v2/only/"} })
	for _, c := range []struct {
		method, path string
		status       int
		rule, says   string
	}{
		{"GET", "/upstream/other/v1", 403, RuleUpstream, "doesn't name"},
		{"GET", "/upstream/nobody", 403, RuleUpstream, "doesn't name"},
		{"GET", "/upstream/", 403, RuleUpstream, "doesn't name"},
		{"GET", "/upstream", 403, RuleUpstream, "doesn't name"},
		{"GET", "/upstream/gone/x", 403, RuleUpstream, "there is no upstream gone"},
		{"POST", "/upstream/svc/v1", 403, RuleMethod, "upstream svc"},
		{"TRACE", "/upstream/svc/v1", 403, RuleMethod, "upstream svc"},
		{"GET", "/upstream/svc/v10", 403, RulePath, "upstream svc"},
		{"GET", "/upstream/svc/", 403, RulePath, "upstream svc"},
		{"GET", "/upstream/svc/v2", 403, RulePath, "upstream svc"},
		{"GET", "/upstream/svc/v1/%2e%2e/v3", 400, RulePath, "isn't plain"},
		{"GET", "/upstream/svc/v1/..%2fv3", 400, RulePath, "isn't plain"},
		{"GET", "/upstream/svc/v1/%252e%252e/v3", 400, RulePath, "isn't plain"},
		{"GET", "/upstream/svc//v1", 400, RulePath, "isn't plain"},
		{"GET", "/upstream/svc/v1/..;/v3", 400, RulePath, "isn't plain"},
		{"GET", "/upstream/svc/v1%5c..%5cv3", 400, RulePath, "isn't plain"},
		{"GET", "/upstream/svc/v1/%00", 400, RulePath, "isn't plain"},
	} {
		if p := b.problem(b.do(c.method, c.path, nil, nil), c.status, c.rule); !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s %s: %q", c.method, c.path, p.Detail)
		}
	}
	b.problem(b.do("GET", "/upstream/svc/v1", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}, nil), 400, RuleRequest)
	if len(b.asked) > 0 {
		t.Errorf("the service was asked %d times", len(b.asked))
	}
	for _, path := range []string{"/upstream/svc/v1", "/upstream/svc/v1/", "/upstream/svc/v1/a%20b", "/upstream/svc/v2/only/x"} {
		if response := b.do("GET", path, nil, nil); response.StatusCode != 200 {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	location := ""
	b := newBench(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}, nil)
	host := b.service.URL
	for to, want := range map[string]string{
		"/base/v2?x=1":              "/upstream/svc/v2?x=1",
		"next":                      "/upstream/svc/v1/next",
		host + "/base":              "/upstream/svc",
		host + "/elsewhere":         "",
		"/based":                    "",
		"/base/../x":                "",
		"/base/%2e%2e/x":            "",
		"https://example.com/base/": "",
		"//example.com/base/":       "",
		"/base?key=" + key:          "",
	} {
		location = to
		response := b.do("GET", "/upstream/svc/v1/here", nil, nil)
		if got := response.Header.Get("Location"); response.StatusCode != http.StatusFound || got != want {
			t.Errorf("%s: %d %q, not %q", to, response.StatusCode, got, want)
		}
	}
}

func TestAnswersComeWithoutCookiesAndWithoutTheKey(t *testing.T) {
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("X-Echo", "it was "+r.Header.Get("Authorization"))
		w.Header().Set("X-Fine", "fine")
		_, _ = io.WriteString(w, "you sent ")
		w.(http.Flusher).Flush()
		for _, part := range []string{r.Header.Get("Authorization")[:12], r.Header.Get("Authorization")[12:], " and more"} {
			_, _ = io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	}, nil)
	response := b.do("GET", "/upstream/svc", nil, nil)
	if h := response.Header; h.Get("Set-Cookie") != "" || h.Get("X-Echo") != "" || h.Get("X-Fine") != "fine" {
		t.Errorf("%v", h)
	}
	raw, err := io.ReadAll(response.Body)
	if err == nil || string(raw) != "you sent Bearer " {
		t.Errorf("%q, %v", raw, err)
	}
	if e := b.exchange(); e.Rule != RuleKey {
		t.Errorf("%+v", e)
	}
}

// Both sides speak in turn, in one exchange.
func TestBodiesStreamBothWays(t *testing.T) {
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Content-Type", "text/event-stream")
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintf(w, "data: %s\n\n", lines.Text())
			w.(http.Flusher).Flush()
		}
	}, nil)
	body, out := io.Pipe()
	answers := make(chan *http.Response)
	go func() { answers <- b.do("POST", "/upstream/svc/chat", nil, body) }()
	fmt.Fprintln(out, "one")
	in := bufio.NewReader((<-answers).Body)
	for _, word := range []string{"one", "two", "three"} {
		if line, err := in.ReadString('\n'); err != nil || line != "data: "+word+"\n" {
			t.Fatalf("%q, %v", line, err)
		}
		_, _ = in.ReadString('\n')
		if word != "three" {
			fmt.Fprintln(out, map[string]string{"one": "two", "two": "three"}[word])
		}
	}
	out.Close()
	if _, err := in.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if e := b.exchange(); e.BytesOut != 14 || e.BytesIn != 14+3*7 {
		t.Errorf("%+v", e)
	}
}

func TestWhatFailsIsAProblemThatNamesTheUpstream(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for rule, c := range map[string]struct {
		status int
		answer http.HandlerFunc
		change func(*Upstream, *Options)
	}{
		RuleKey:         {503, ok, func(_ *Upstream, o *Options) { o.Key = noKey }},
		RuleUnreachable: {502, ok, func(u *Upstream, _ *Options) { u.URL = "http://127.0.0.1:1" }},
		RuleSilent:      {504, hang, func(_ *Upstream, o *Options) { o.FirstByte = 50 * time.Millisecond }},
	} {
		b := newBench(t, c.answer, c.change)
		if p := b.problem(b.do("GET", "/upstream/svc", nil, nil), c.status, rule); !strings.Contains(p.Detail, "svc") || strings.Contains(fmt.Sprint(p), key) {
			t.Errorf("%+v", p)
		}
		if e := b.exchange(); e.Rule != rule || e.Status != c.status {
			t.Errorf("%+v", e)
		}
	}
}

func TestTooLargeAHeaderIsNoAnswer(t *testing.T) {
	b := newBench(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", maxAnswerHeader))
	}, nil)
	b.problem(b.do("GET", "/upstream/svc", nil, nil), 502, RuleUnreachable)
}

func TestARunsEndEndsItsRequests(t *testing.T) {
	reached := make(chan struct{}, maxRequests)
	gone := make(chan struct{}, maxRequests)
	b := newBench(t, func(_ http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	}, nil)
	answers := make(chan int, maxRequests)
	for range maxRequests {
		go func() { answers <- b.do("GET", "/upstream/svc", nil, nil).StatusCode }()
	}
	for range maxRequests {
		<-reached
	}
	b.problem(b.do("GET", "/upstream/svc", nil, nil), 503, RuleBusy)
	_ = b.handler.Close()
	for range maxRequests {
		<-gone
		if status := <-answers; status != http.StatusServiceUnavailable {
			t.Errorf("%d", status)
		}
	}
	b.problem(b.do("GET", "/upstream/svc", nil, nil), 503, RuleBusy)
}

func TestARunsDeadlineEndsItsRequests(t *testing.T) {
	b := newBench(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil)
	b.handler.session.Deadline = time.Now().Add(50 * time.Millisecond)
	b.problem(b.do("GET", "/upstream/svc", nil, nil), 504, RuleDeadline)
}

// An answer that breaks off is no shorter answer.
func TestAnAnswerThatBreaksOffBreaksOff(t *testing.T) {
	b := newBench(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}, nil)
	if raw, err := io.ReadAll(b.do("GET", "/upstream/svc", nil, nil).Body); err == nil {
		t.Errorf("%q", raw)
	}
}

// A connection that a caller broke off in a body isn't taken for the next request.
func TestACallerThatHoldsItsBodyBackGetsTheAnswer(t *testing.T) {
	b := newBench(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusTeapot)
	}, nil)
	body, out := io.Pipe()
	defer out.Close()
	if response := b.do("POST", "/upstream/svc", nil, body); response.StatusCode != http.StatusTeapot {
		t.Errorf("%d", response.StatusCode)
	}
	b.exchange()
	if response := b.do("GET", "/upstream/svc", nil, nil); response.StatusCode != http.StatusTeapot {
		t.Errorf("%d", response.StatusCode)
	}
}

func TestABodyThatStallsIsTheCallers(t *testing.T) {
	b := newBench(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, func(_ *Upstream, o *Options) { o.Silence = 50 * time.Millisecond })
	body, out := io.Pipe()
	defer out.Close()
	b.problem(b.do("POST", "/upstream/svc", nil, body), 400, RuleRequest)
}
