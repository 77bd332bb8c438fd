package web_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tabTo presses the tabulator key until a control with this text or value has the focus.
func (b *tab) tabTo(text string) {
	b.t.Helper()
	const most = 60 // far more than any page has before what people come for
	for range most {
		b.do(chromedp.KeyEvent(kb.Tab))
		if eval[bool](b, `(document.activeElement.textContent || document.activeElement.value).includes("`+text+`")`) {
			return
		}
	}
	b.t.Fatalf("%d keys don't lead to %q", most, text)
}

// Somebody without a mouse finds the flow that failed, changes a value of the step that did it, and has the rest done.
func TestAFlowIsRunAgainByKeyboardAlone(t *testing.T) {
	t.Parallel()
	p := newPage(t, chain)
	b := newTab(t, p)
	failed := p.flows("chain", `{"do": "fail"}`)
	b.open("/ui/runs")
	b.until(live)
	began := time.Now()
	enter := chromedp.KeyEvent(kb.Enter)
	b.tabTo(failed.Unit)
	b.leave(enter)
	b.tabTo("Run again from two")
	b.leave(enter)
	b.until(`document.activeElement.id === "change" && document.activeElement.value === '"fail"'`)
	b.do(chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.Home, chromedp.KeyModifiers(chromedp.ModifierShift)))
	b.leave(chromedp.KeyEvent(`"say"`), enter)
	b.until(says("h1", "chain succeeded"))
	t.Logf("it took %v", time.Since(began).Round(time.Millisecond))
}
