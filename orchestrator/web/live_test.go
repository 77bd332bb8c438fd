package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// soon is how long a page may take to show what happened: generous, for the machine may have much else to do.
const soon = 5 * time.Second

// within fails the test where a page has seen something too late, and tells how long it took.
func within(t *testing.T, what string, from, seen time.Time) {
	t.Helper()
	took := seen.Sub(from)
	if t.Logf("%s was seen after %v", what, took.Round(time.Millisecond)); took > soon {
		t.Errorf("%s was seen after %v", what, took)
	}
}

func (p *page) cancel(id string) api.Record {
	p.t.Helper()
	_, err := p.svc.Cancel(trusted.Context(p.t), id, "")
	must(p.t, err)
	return p.ended(id)
}

func TestAPersonSignsIn(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	b := newTab(t, p)
	must(t, p.svc.Signins.End(trusted.Context(t), secretOf(b)))
	b.open("/ui/runs?state=failed")
	b.until(says("h1", "Sign in") + ` && document.activeElement.id === "token"`)
	b.do(chromedp.KeyEvent(token + kb.Enter))
	b.until(says("h1", "Runs") + ` && location.search === "?state=failed"`)
	b.do(chromedp.Click(chromedp.CSS(".menu summary")), chromedp.Click(chromedp.CSS("button[formaction$=logout]")))
	b.until(says("h1", "Sign in"))
	b.open("/ui/runs")
	b.until(says("h1", "Sign in"))
}

const live = `document.querySelector("#live")?.textContent === "Live"`

func row(id, text string) string { return says("#r-"+id, text) }

func TestTheListOfRunsLives(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	b := newTab(t, p)
	old := p.ran("", "")
	b.open("/ui/runs")
	b.until(live)
	b.do(chromedp.SendKeys(chromedp.CSS("#f-unit"), "ac"),
		chromedp.Click(chromedp.CSS("#r-"+old+" input")), chromedp.Focus(chromedp.CSS("#f-unit")))
	same := `document.activeElement.id === "f-unit" && document.activeElement.value === "ac" && document.querySelector("#r-` + old + ` input").checked`
	b.until(same)

	seen := b.watch(`document.querySelectorAll("tbody tr").length === 2`)
	began := time.Now()
	id := p.submit("wait", "")
	within(t, "a run that began", began, seen())
	b.until(row(id, "Running"))
	seen = b.watch(row(id, "Cancelled"))
	within(t, "a run that was cancelled", *p.cancel(id).FinishedAt, seen())
	if !eval[bool](b, same) {
		t.Error("an update takes the focus, what was typed or what was chosen")
	}
	if got := p.streams.Load(); got != 1 {
		t.Errorf("%d streams", got)
	}
}

// Rows that leave a filtered list take nothing from the others.
func TestWhatStaysKeepsTheFocus(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	b := newTab(t, p)
	stays, goes := p.begun(), p.begun()
	b.open("/ui/runs?state=running")
	b.until(live + "&&" + row(goes, "Running"))
	b.do(chromedp.Focus(chromedp.CSS("#r-" + stays + " a")))
	p.cancel(goes)
	b.until(`!document.querySelector("#r-` + goes + `")`)
	if !eval[bool](b, `document.activeElement === document.querySelector("#r-`+stays+` a")`) {
		t.Error("the focus is lost")
	}
}

func TestAPageOfARunLives(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	b := newTab(t, p)
	id := p.begun()
	b.open("/ui/runs/" + id)
	b.until(live + "&&" + says("h1", "actor is running"))
	seen := b.watch(says("h1", "actor was cancelled") + ` && document.title.includes("was cancelled")`)
	within(t, "the end of a run", *p.cancel(id).FinishedAt, seen())
	b.until(`!document.querySelector("form[action$=cancel]")`)
}

// A page outlives its server: it says what is wrong, and is right again by itself.
func TestAPageOutlivesItsServer(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	b := newTab(t, p)
	id := p.begun()
	b.open("/ui/runs")
	b.until(live + "&&" + row(id, "Running"))
	b.expect("ERR_(CONNECTION|INCOMPLETE|EMPTY)")
	p.end()
	b.until(says("#live", "No connection"))
	p.start(strings.TrimPrefix(p.url, "http://"))
	began := time.Now()
	p.cancel(id)
	b.until(live + "&&" + row(id, "Cancelled"))
	within(t, "the server", began, time.Now())
}

func TestAPageSaysThatItsTokenIsGone(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	b := newTab(t, p)
	b.open("/ui/runs")
	b.until(live)
	b.expect("ERR_INCOMPLETE")
	must(t, p.svc.Signins.End(trusted.Context(t), secretOf(b)))
	b.until(says("#live", "signed out"))
}

func TestEightTabsLiveByThreeStreams(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	tabs := []*tab{newTab(t, p)}
	for len(tabs) < 8 {
		tabs = append(tabs, tabs[0].another())
	}
	for _, b := range tabs {
		b.open("/ui/runs")
	}
	for _, b := range tabs {
		b.until(live)
	}
	if got := p.streams.Load(); got != 3 {
		t.Errorf("eight tabs have %d streams", got)
	}
	id := p.ran("", "")
	for _, b := range tabs {
		b.until(row(id, "Succeeded"))
	}
	if got := p.streams.Load(); got != 3 {
		t.Errorf("eight tabs have %d streams", got)
	}
	for _, b := range tabs[:4] { // their places are taken by others
		b.do(chromedp.Navigate("about:blank"))
	}
	testkit.Eventually(t, "three streams of four tabs", func() bool { return p.streams.Load() == 3 })
}

func TestThePageIsWholeWithoutScript(t *testing.T) {
	t.Parallel()
	p := newPage(t)
	b := newTab(t, p)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	id, other := p.begun(), p.begun()
	enter := chromedp.KeyEvent(kb.Enter)
	b.open("/ui/runs")
	b.leave(chromedp.Focus(chromedp.CSS("#r-"+id+" a")), enter)
	b.until(says("h1", "actor is running"))
	b.leave(chromedp.Click(chromedp.CSS("form[action$=cancel] button")))
	p.ended(id)
	b.open("/ui/runs/" + id)
	b.until(says("h1", "actor was cancelled"))
	b.leave(chromedp.Focus(chromedp.CSS("form[action$=again] button")), enter)
	b.until(says("h1", "actor is ") + ` && !location.pathname.endsWith("` + id + `")`)
	b.leave(chromedp.Click(chromedp.CSS("header nav a"))) // to the runs
	b.until(`document.querySelectorAll("tbody tr").length === 3`)
	b.leave(chromedp.Focus(chromedp.CSS("#r-"+other+" input")), chromedp.KeyEvent(" "), chromedp.Click(chromedp.CSS("button[value=cancel]")))
	p.ended(other)
	if got := p.streams.Load(); got != 0 {
		t.Errorf("%d streams", got)
	}
}
