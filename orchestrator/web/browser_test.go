package web_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator/signins"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// TestMain also fails where the browser outlives the tests.
func TestMain(m *testing.M) { testkit.NoLeaks(m, func() { endChromium() }) }

// chromium is the browser of all tests, which the first one starts; endChromium ends it.
var (
	chromium    = sync.OnceValues(startChromium)
	endChromium = func() {}
)

func startChromium() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1")) // names of foreign sites are this machine
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	endChromium = func() {
		_ = chromedp.Cancel(ctx)
		stop()
		end()
	}
	return ctx, chromedp.Do(ctx) // which starts it
}

// patience is longer than anything takes that works.
const patience = time.Minute

// tab is a tab of a real browser. What it complains of fails the test.
type tab struct {
	t   testing.TB
	p   *page
	ctx context.Context //nolint:containedctx // it is what chromedp knows the tab by

	mu       sync.Mutex
	wrong    []string
	expected *regexp.Regexp // of what it complains; nil: nothing
	heard    []string       // of that
}

// theBrowser is the browser of all tests. Where there is no Chromium the test is skipped with the reason, or fails where
// tests may not be skipped.
func theBrowser(t testing.TB) context.Context {
	t.Helper()
	browser, err := chromium()
	if err != nil && os.Getenv("AOD_TEST_DOCKER") == "require" {
		t.Fatalf("AOD_TEST_DOCKER=require, but there is no Chromium: %v", err)
	}
	if err != nil {
		t.Skipf("no Chromium to test with: %v", err)
	}
	return browser
}

// newTab is a tab of a browser of its own, in which the holder of the server's token has signed in.
func newTab(t testing.TB, p *page) *tab {
	t.Helper()
	b := openTab(theBrowser(t), t, p, chromedp.WithNewBrowserContext())
	session, err := p.svc.Signins.Begin(trusted.Context(t), signins.ByToken(token))
	must(t, err)
	at, err := url.Parse(p.url + "/ui")
	must(t, err)
	cookie := p.svc.Signins.Cookie(session, at.Scheme == "https")
	call(b, network.SetCookie, network.SetCookieParams{
		Name: cookie.Name, Value: cookie.Value, URL: at.String(), Path: at.Path, HTTPOnly: &cookie.HttpOnly, Secure: &cookie.Secure,
		SameSite: network.CookieSameSiteLax,
	})
	return b
}

// another is a further tab of the same browser.
func (b *tab) another() *tab {
	b.t.Helper()
	return openTab(b.ctx, b.t, b.p)
}

func openTab(parent context.Context, t testing.TB, p *page, options ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{t: t, p: p}
	var cancel context.CancelFunc
	b.ctx, cancel = chromedp.NewContext(parent, append(options, chromedp.WithListener(b.listen))...)
	t.Cleanup(func() {
		_ = chromedp.Cancel(b.ctx)
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, what := range b.wrong {
			t.Errorf("the browser complains: %s", what)
		}
	})
	must(t, chromedp.Do(b.ctx))
	call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // it is seen
	return b
}

// listen hears what the browser complains of, and whom it asks.
func (b *tab) listen(event any) {
	switch e := event.(type) {
	case *cdpruntime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.complain(text)
	case *cdpruntime.EventConsoleAPICalled:
		b.complain("console." + string(e.Type))
	case *log.EventEntryAdded: // also reports of the content security policy
		b.complain(string(e.Entry.Level) + " " + e.Entry.Text + " " + e.Entry.URL)
	case *cdppage.EventJavascriptDialogOpening:
		b.complain("a dialog: " + e.Message)
	case *network.EventRequestWillBeSent:
		if at := e.Request.URL; !strings.HasPrefix(at, b.p.url+"/ui/") {
			b.complain("it asked for " + at)
		}
	}
}

func (b *tab) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.expected == nil || !b.expected.MatchString(text) {
		b.wrong = append(b.wrong, text)
		return
	}
	b.heard = append(b.heard, text)
}

// expect has the tab complain as a pattern says.
func (b *tab) expect(pattern string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = regexp.MustCompile(pattern)
}

// do does steps one after the other.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	must(b.t, chromedp.Do(ctx, steps...))
}

// complained reports whether the tab has complained of something that was expected.
func (b *tab) complained(of string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.heard, func(text string) bool { return strings.Contains(text, of) })
}

func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.p.url + path))
}

// leave does steps of which the last leads to another page, and waits for that.
func (b *tab) leave(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	eval[bool](b, "window.left = true")
	b.do(steps...)
	b.until(`!window.left && document.readyState === "complete"`)
}

// eval returns what an expression is in the tab, or what its promise resolves to.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// until waits until a condition holds in the tab, whichever page it shows.
func (b *tab) until(condition string) {
	b.t.Helper()
	holds := func() bool {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](condition))
		return err == nil && holds // the page may be gone, and the next one not there
	}
	if !testkit.Within(patience, holds) {
		b.t.Fatalf("not within %v: %s; the page says: %s", patience, condition, eval[string](b, "document.body.innerText"))
	}
}

// watch has the tab note when a condition begins to hold; what it returns waits for that.
func (b *tab) watch(condition string) func() time.Time {
	b.t.Helper()
	eval[bool](b, `window.seen = new Promise((resolve) => {
		const look = () => (`+condition+`) && resolve(Date.now())
		new MutationObserver(look).observe(document, {subtree: true, childList: true, characterData: true, attributes: true})
		look()
	}), true`)
	return func() time.Time {
		b.t.Helper()
		return time.UnixMilli(eval[int64](b, "window.seen"))
	}
}

// says is a condition: an element has a text.
func says(selector, text string) string {
	return `document.querySelector("` + selector + `")?.textContent.includes("` + text + `") === true`
}

// call sends the browser a command that is about the tab.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	got, err := chromedp.Call(ctx, command, params)
	must(b.t, err)
	return got
}

// secretOf is the secret by which somebody has signed in there.
func secretOf(b *tab) string {
	b.t.Helper()
	for _, c := range call(b, network.GetCookies, network.GetCookiesParams{URLs: []string{b.p.url + "/ui/"}}).Cookies {
		if strings.HasPrefix(c.Name, "aod_") && c.HTTPOnly {
			return c.Value
		}
	}
	b.t.Fatal("nobody has signed in")
	return ""
}
