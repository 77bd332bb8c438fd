package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/signins"
)

// state is all that the API tells of a server, by its address.
func (p *page) state() map[string]string {
	p.t.Helper()
	told := map[string]string{}
	client := p.client
	defer func() { p.client = client }()
	p.client = p.newBrowser()
	for _, path := range []string{"runs", "units", "units/actor", "questions", "schedules", "sessions"} {
		told[path] = p.get("/v1/"+path, "Authorization: Bearer "+token).wants(p.t, http.StatusOK).body
	}
	return told
}

// unchanged fails the test unless the server has what it had.
func (p *page) unchanged(had map[string]string) {
	p.t.Helper()
	if diff := cmp.Diff(had, p.state()); diff != "" {
		p.t.Errorf("the server has changed: %s", diff)
	}
}

// Who may only read gets every page and none of the changes. Each route that isn't a GET is one, but for signing in and
// out, and how one's own browser shows pages.
func TestWhoMayOnlyReadChangesNothing(t *testing.T) {
	t.Parallel()
	p := newPage(t, sceneFiles...).signIn()
	all := newScene(p)
	p.signIn(access.Read)
	had, refused := p.state(), 0
	reads := []access.Scope{access.Read, access.Questions}
	for _, route := range p.web.Routes() {
		method, path, _ := strings.Cut(route.Pattern, " ")
		changes := method != http.MethodGet && method != http.MethodHead
		switch {
		case changes && route.Scope == "" && !slices.Contains([]string{"/ui/login", "/ui/logout", "/ui/view"}, path):
			t.Errorf("everybody may %s", route.Pattern)
		case changes && slices.Contains(reads, route.Scope):
			t.Errorf("who may read may %s", route.Pattern)
		case route.Scope == "":
			continue
		}
		addresses := all.at(path)
		if len(addresses) == 0 {
			t.Errorf("the scene has nothing for %s", route.Pattern)
		}
		for _, at := range addresses {
			a := p.do(p.request(method, at, fields("act", "cancel", "run", all["runs"][4], "unit", "actor", "message", "x")))
			if (a.StatusCode == http.StatusForbidden) == slices.Contains(reads, route.Scope) {
				t.Errorf("%s %s: %s for who may only read", method, at, a.Status)
			}
			if !slices.Contains(reads, route.Scope) {
				refused++
			}
		}
	}
	if p.unchanged(had); refused < 20 {
		t.Errorf("only %d were refused", refused)
	}
}

// attacks are what a page of another origin can have a browser do. They resolve to what that page could read.
const attacks = `(async () => {
	const at = %q, run = %q, icon = %q, got = {}
	const form = new URLSearchParams({act: "cancel", run}), simple = {method: "POST", mode: "no-cors", credentials: "include", body: form}
	const text = (path, how) => fetch(at + path, {credentials: "include", ...how}).then((a) => a.text(), () => "")
	const loads = (name, set) => new Promise((done) => {
		const e = document.createElement(name)
		e.onload = () => done(name)
		e.onerror = () => done("")
		set(e)
		document.body.append(e)
	})
	const opens = (stream) => new Promise((done) => {
		stream.onopen = () => done("open")
		stream.onerror = () => done("")
	}).finally(() => stream.close())
	const frame = (name) => loads("iframe", (e) => { e.name = name; e.src = at + "/ui/runs" })
	await Promise.all(Object.entries({
		"fetch": text("/ui/runs"), "fetch no-cors": text("/ui/runs", {mode: "no-cors"}),
		"fetch JSON": text("/ui/runs", {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}),
		"fetch with a header": text("/ui/runs", {headers: {"X-Mine": "1"}}),
		"the API": text("/v1/runs"), "the API no-cors": text("/v1/runs", {...simple}),
		"post": text("/ui/runs", {method: "POST", body: form}), "post no-cors": text("/ui/runs", simple),
		"cancel": text("/ui/runs/" + run + "/cancel", simple), "remove": text("/ui/schedules/nightly/remove", simple),
		"sign out": text("/ui/logout", simple), "sign in": text("/ui/login", simple),
		"img": loads("img", (e) => e.src = at + icon), "img cancels": loads("img", (e) => e.src = at + "/ui/runs/" + run + "/cancel"),
		"script": loads("script", (e) => e.src = at + "/ui/runs"), "style": loads("link", (e) => { e.rel = "stylesheet"; e.href = at + "/ui/runs" }),
		"WebSocket": opens(new WebSocket(at.replace("http", "ws") + "/ui/live?page=runs")),
		"EventSource": opens(new EventSource(at + "/ui/live?page=runs", {withCredentials: true})),
		"iframe": frame("shown").then(() => { try { return frames.shown.document.body.innerText } catch { return "" } }),
		"form in an iframe": frame("sent").then(() => new Promise((done) => {
			document.getElementsByName("sent")[0].onload = () => done("")
			const f = document.createElement("form")
			f.method = "post"; f.target = "sent"; f.action = at + "/ui/runs/" + run + "/cancel"
			document.body.append(f)
			f.submit()
		})),
	}).map(async ([what, read]) => (got[what] = await read)))
	return Object.entries(got).filter(([, read]) => read).map(([what, read]) => what + ": " + read)
})()`

// The browser has signed in. It sends the cookie from the other port, which is of the same site, and from another site
// where a link is followed.
func TestAForeignPageReadsAndChangesNothing(t *testing.T) {
	t.Parallel()
	p := newPage(t, sceneFiles...).signIn()
	all := newScene(p)
	had, run := p.state(), all["runs"][4]
	icon := "/ui/" + regexpIn(t, p.get("/ui/login").body, `(static/icon[^"]*)"`)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>Evil</title>"))
	}))
	t.Cleanup(evil.Close)
	for name, from := range map[string]string{
		"another port": evil.URL, "another site": strings.Replace(evil.URL, "127.0.0.1", "evil.example", 1),
	} {
		t.Run(name, func(t *testing.T) {
			b := newTab(t, p)
			b.expect(".") // of each
			b.do(chromedp.Navigate(from))
			for _, read := range eval[[]string](b, fmt.Sprintf(attacks, p.url, run, icon)) {
				t.Errorf("it read by %s", read)
			}
			if p.unchanged(had); t.Failed() {
				return
			}
			testkit.Eventually(t, "that the browser shows no frame", func() bool { return b.complained("frame-ancestors 'none'") })
			b.leave(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.body.innerHTML = '<form method="post" action="%s/ui/runs/%s/cancel">',
				document.forms[0].submit()`, p.url, run)))
			b.until(says(".note", "only this server's own page may change something"))
			p.unchanged(had)
		})
	}
	t.Run("a name that was pointed at the server", func(t *testing.T) {
		b := newTab(t, p)
		b.expect(".")
		at := strings.Replace(p.url, "127.0.0.1", "evil.example", 1) + "/ui/runs"
		cookie := p.svc.Signins.Cookie(signins.Session{Secret: secretOf(b)}, false)
		call(b, network.SetCookie, network.SetCookieParams{Name: cookie.Name, Value: cookie.Value, URL: at, Path: "/"})
		b.do(chromedp.Navigate(at))
		b.until(says(".note", "does not answer to the name"))
		if got := eval[[]int](b, `Promise.all([
			fetch("/ui/units"), fetch("/ui/live?page=runs"), fetch("/ui/runs/`+run+`/cancel", {method: "POST"}), fetch("/v1/runs"), fetch("/metrics"),
			fetch("/ui/login", {method: "POST", body: new URLSearchParams({token: "`+token+`"})})
		]).then((all) => all.map((a) => a.status))`); slices.ContainsFunc(got, func(status int) bool { return status != http.StatusForbidden }) {
			t.Errorf("it gets %v", got)
		}
		p.unchanged(had)
	})
}
