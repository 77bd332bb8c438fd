package web_test

import (
	"bufio"
	"html"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"

	"github.com/agent-on-demand/aod/api"
)

// prefix is where a proxy has the page's server.
const prefix = "/tools/aod"

// behindProxy puts the page behind a proxy that has other things beside it, with TLS or without. Nobody has signed in
// there.
func (p *page) behindProxy(tls bool) *page {
	p.t.Helper()
	to, err := url.Parse(p.url)
	must(p.t, err)
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.SetXForwarded()
		r.Out.Host = r.In.Host
	}}))
	proxy := httptest.NewUnstartedServer(mux)
	proxy.Config.ErrorLog = log.New(io.Discard, "", 0) // a browser doesn't know its certificate
	start := proxy.Start
	if tls {
		start = proxy.StartTLS
	}
	start()
	p.t.Cleanup(proxy.Close)
	p.url, p.client = proxy.URL+prefix, p.newBrowser()
	p.client.Transport = proxy.Client().Transport
	return p
}

var (
	reference = regexp.MustCompile(` (href|src|action|formaction|data-peek)="([^"]*)"`)
	anchor    = regexp.MustCompile(` id="([^"]*)"`)
)

// unled are addresses to which no page leads: as nobody needs them who has signed in, or as this run has no such thing.
var unled = regexp.MustCompile(`/(nothing|login|models|changes)$`)

// crawl is a way through all that the page's links lead to.
type crawl struct {
	*page
	posts   *http.ServeMux             // the addresses of forms
	anchors map[string]map[string]bool // of pages, by their addresses without a fragment; none of what isn't a page
	from    map[string]string          // the page that leads to an address first
	queue   []string
}

// crawled follows all links from an address of the page.
func (p *page) crawled(from string) *crawl {
	p.t.Helper()
	c := &crawl{p, http.NewServeMux(), map[string]map[string]bool{}, map[string]string{p.url + from: ""}, []string{p.url + from}}
	for _, route := range p.web.Routes() {
		c.posts.Handle(route.Pattern, http.NotFoundHandler())
	}
	for ; len(c.queue) > 0; c.queue = c.queue[1:] {
		c.visit(c.queue[0])
	}
	for at, from := range c.from {
		page, fragment, _ := strings.Cut(at, "#")
		if there := c.anchors[page]; fragment != "" && there != nil && !there[fragment] {
			p.t.Errorf("%s leads to %s, which has no such place", from, at)
		}
	}
	return c
}

// visit asks for an address unless that was done.
func (c *crawl) visit(at string) {
	c.t.Helper()
	page, _, _ := strings.Cut(at, "#")
	if _, was := c.anchors[page]; was {
		return
	}
	c.anchors[page] = nil
	a := c.get(strings.TrimPrefix(page, c.url))
	switch {
	case a.StatusCode == http.StatusSeeOther:
		c.refer(page, "Location", a.Header.Get("Location"))
	case a.StatusCode != http.StatusOK:
		c.t.Errorf("%s leads to %s: %s", c.from[at], at, a.Status)
	case strings.HasPrefix(a.Header.Get("Content-Type"), "text/html"):
		c.anchors[page] = map[string]bool{}
		for _, found := range anchor.FindAllStringSubmatch(a.body, -1) {
			c.anchors[page][html.UnescapeString(found[1])] = true
		}
		shownAt := page
		if !strings.HasPrefix(a.body, "<!doctype html>") { // a piece of the page that leads to it
			shownAt = c.from[at]
		}
		for _, found := range reference.FindAllStringSubmatch(a.body, -1) {
			c.refer(shownAt, found[1], html.UnescapeString(found[2]))
		}
	}
}

// refer notes what a page refers to, which must be of the same page.
func (c *crawl) refer(page, by, to string) {
	c.t.Helper()
	base, err := url.Parse(page)
	must(c.t, err)
	at, err := base.Parse(to)
	if err != nil || !strings.HasPrefix(at.String(), c.url+"/ui/") || strings.HasPrefix(to, "/") {
		c.t.Errorf("%s: %s=%q leads out: %v", page, by, to, err)
		return
	}
	if strings.HasSuffix(by, "action") {
		r := httptest.NewRequest(http.MethodPost, strings.TrimPrefix(at.String(), c.url), nil)
		if _, pattern := c.posts.Handler(r); strings.HasPrefix(pattern, http.MethodPost) {
			return
		}
	}
	if _, known := c.from[at.String()]; !known {
		c.from[at.String()], c.queue = page, append(c.queue, at.String())
	}
}

// Below a prefix of a proxy the page is whole: nothing leads out of it or nowhere, and looking changes nothing.
func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	for name, tls := range map[string]bool{"with TLS": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPage(t, sceneFiles...).signIn()
			all, direct := newScene(p), p.url
			had := p.state()
			through := p.behindProxy(tls).url
			p.get("/ui/runs").leads(t, "./login?next=runs")
			given := cookieOf(t, p.do(p.request("POST", "/ui/login", fields("token", token), "Origin: "+strings.TrimSuffix(p.url, prefix))).leads(t, "./runs"))
			if given.Secure != tls || strings.HasPrefix(given.Name, "__Secure-") != tls || !given.HttpOnly || given.Path != "" || given.Domain != "" {
				t.Errorf("cookie: %v", given)
			}
			for path, sent := range map[string]int{prefix + "/ui/runs": 1, prefix + "/v1/runs": 0, "/tools/other": 0, "/": 0} {
				at, err := url.Parse(strings.TrimSuffix(p.url, prefix) + path)
				must(t, err)
				if got := len(p.client.Jar.Cookies(at)); got != sent {
					t.Errorf("%d cookies are sent to %s, want %d", got, path, sent)
				}
			}
			seen := p.crawled("/ui/")
			if t.Logf("%d addresses", len(seen.anchors)); len(seen.anchors) < 60 {
				t.Errorf("only %d addresses", len(seen.anchors))
			}
			for _, one := range all.pages(p) {
				if _, was := seen.anchors[p.url+one.path]; !was && !unled.MatchString(one.path) {
					t.Errorf("no link leads to %s", one.path)
				}
			}
			id := all["runs"][4]
			p.follows("runs", id)
			p.url = direct
			p.unchanged(had)
			p.url = through
			p.do(p.request("POST", "/ui/runs/"+id+"/cancel", fields(), "Origin: "+strings.TrimSuffix(p.url, prefix))).leads(t, "../"+id)
			p.until(id, func(r api.Record) bool { return r.Outcome == api.WasCancelled })
		})
	}
}

// follows fails the test unless the stream of a page says a text.
func (p *page) follows(page, text string) {
	p.t.Helper()
	a, err := p.client.Do(p.request("GET", "/ui/live?page="+page, nil))
	must(p.t, err)
	defer a.Body.Close()
	lines := bufio.NewScanner(a.Body)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data:") && strings.Contains(lines.Text(), text) {
			return
		}
	}
	p.t.Errorf("%s: %s isn't in the stream: %v", page, a.Status, lines.Err())
}

func TestAPageLivesBehindAProxyWithTLS(t *testing.T) {
	t.Parallel()
	p := newPage(t).behindProxy(true)
	b := newTab(t, p)
	call(b, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true})
	call(b, network.ClearBrowserCookies, cdp.Empty{})
	b.open("/ui/")
	b.until(says("h1", "Sign in"))
	b.leave(chromedp.SendKeys(chromedp.CSS("#token"), token), chromedp.Click(chromedp.CSS(".btn.main")))
	b.until(live + ` && location.pathname === "` + prefix + `/ui/runs"`)
	id := p.begun()
	b.until(row(id, "actor"))
	b.leave(chromedp.Click(chromedp.CSS("#r-" + id + " a")))
	b.until(live)
	b.leave(chromedp.Click(chromedp.CSS(`[action$=cancel] button`)))
	b.until(says("main", "Cancelled") + ` && location.pathname === "` + prefix + "/ui/runs/" + id + `"`)
}
