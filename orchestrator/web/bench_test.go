package web_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	cdppage "github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// medians reports what was measured several times.
type medians map[string][]float64

func (m medians) add(unit string, value float64) { m[unit] = append(m[unit], value) }

func (m medians) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // it has to do with the browser's own beginning
	for unit, values := range m {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], unit)
	}
}

// measured is a tab that notes for how long its main thread is busy at once.
func measured(b *testing.B, p *page) *tab {
	b.Helper()
	t := newTab(b, p)
	call(t, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: `window.longest = 0
		new PerformanceObserver((list) => {
			for (const e of list.getEntries()) window.longest = Math.max(window.longest, e.duration)
		}).observe({type: "longtask", buffered: true})`})
	return t
}

// opened measures a page from the request to its load, and what it takes.
func (b *tab) opened(path string, m medians) {
	b.t.Helper()
	b.open(path)
	b.until(`document.readyState === "complete" && performance.getEntriesByType("navigation")[0].loadEventEnd > 0`)
	m.add("ms-load", eval[float64](b, `performance.getEntriesByType("navigation")[0].loadEventEnd`))
	m.add("elements", eval[float64](b, `document.querySelectorAll("*").length`))
	m.add("KB", eval[float64](b, `performance.getEntriesByType("navigation")[0].decodedBodySize / 1000`))
	m.add("KB-sent", eval[float64](b, `performance.getEntriesByType("navigation")[0].encodedBodySize / 1000`))
}

// memory measures the heap of the tab's scripts, and what its process has for itself.
func (b *tab) memory(m medians, when string) {
	b.t.Helper()
	m.add("MB-process-"+when, largestRenderer(b.t)/1e6)
	call(b, heapprofiler.CollectGarbage, cdp.Empty{})
	m.add("MB-heap-"+when, call(b, cdpruntime.GetHeapUsage, cdp.Empty{}).UsedSize/1e6)
	m.add("MB-collected-"+when, largestRenderer(b.t)/1e6)
	m.add("ms-longest-"+when, eval[float64](b, "window.longest"))
}

// largestRenderer is how many bytes the largest of the browser's processes for tabs has for itself.
func largestRenderer(t testing.TB) (largest float64) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, at := range all {
		process := filepath.Dir(at)
		if text, _ := os.ReadFile(at); !strings.Contains(string(text), "--type=renderer") || !isOurs(process) {
			continue
		}
		rollup, _ := os.ReadFile(filepath.Join(process, "smaps_rollup"))
		own := 0.0
		for line := range strings.Lines(string(rollup)) {
			var kilobytes float64
			if n, _ := fmt.Sscanf(line, "Private_Clean: %f", &kilobytes); n == 1 {
				own += kilobytes
			}
			if n, _ := fmt.Sscanf(line, "Private_Dirty: %f", &kilobytes); n == 1 {
				own += kilobytes
			}
		}
		largest = max(largest, own*1024)
	}
	return largest
}

// isOurs reports whether this process began another one, or began what did.
func isOurs(process string) bool {
	for range 10 {
		stat, _ := os.ReadFile(filepath.Join(process, "stat"))
		var parent int
		_, rest, _ := strings.Cut(string(stat), ") ")
		if _, _ = fmt.Sscanf(rest, "%s %d", new(string), &parent); parent == os.Getpid() {
			return true
		}
		process = fmt.Sprintf("/proc/%d", parent)
	}
	return false
}

// Run these with -benchtime 5x.
func BenchmarkALogOf100000Lines(b *testing.B) {
	p := newPage(b)
	p.write("actor/agent.yaml", "name: actor\nlimits: {log: 64MiB, timeout: 1h}\n")
	const lines = 100_000
	id := p.submit("chatter", fmt.Sprint(lines))
	t := measured(b, p) // until all is there
	t.open("/ui/runs/" + id + "/log")
	t.until(`document.querySelector("#L100000") !== null`)
	_ = chromedp.Cancel(t.ctx)
	last, m := lines+2, medians{} // any program writes two lines first
	for b.Loop() {
		t = measured(b, p)
		t.open("/ui/login")
		t.memory(m, "nothing")
		t.opened("/ui/runs/"+id+"/log", m)
		t.until(live)
		m.add("ms-live", eval[float64](t, "performance.now()"))
		t.memory(m, "end")
		for range 20 {
			last++
			p.release <- struct{}{}
			t.until(fmt.Sprintf(`document.querySelector("#L%d") !== null`, last))
		}
		t.memory(m, "grown")
		for eval[bool](t, `document.querySelector("a[href^='?before']") !== null`) {
			t.leave(chromedp.Click(chromedp.CSS("a[href^='?before']")))
		}
		t.memory(m, "earlier")
		_ = chromedp.Cancel(t.ctx)
	}
	m.report(b)
}

// opens measures a page that lives, each time in a new tab.
func opens(b *testing.B, p *page, path string) {
	b.Helper()
	m := medians{}
	for b.Loop() {
		t := measured(b, p)
		t.opened(path, m)
		t.until(live)
		m.add("ms-live", eval[float64](t, "performance.now()"))
		t.memory(m, "end")
		_ = chromedp.Cancel(t.ctx)
	}
	m.report(b)
}

// mapped is a run of the flow many over so many items, when it has made so many calls.
func (p *page) mapped(items, calls int) (id string) {
	p.t.Helper()
	list, err := json.Marshal(make([]int, items))
	must(p.t, err)
	record, _, err := p.svc.Submit(trusted.Context(p.t), spool.Submission{Unit: "many", Input: []byte(`{"list": ` + string(list) + `}`)})
	must(p.t, err)
	testkit.Eventually(p.t, "so many calls", func() bool {
		tree, err := p.svc.Runs.Tree(trusted.Context(p.t), record.ID)
		must(p.t, err)
		return len(tree.Calls) == calls
	})
	return record.ID
}

func BenchmarkARunWith2000Calls(b *testing.B) {
	p := newPage(b, flowFiles("many", `
start: texts
nodes:
  texts: {map: "${{ input.list }}", max: 2000, parallel: 4, flow: {nodes: {s: {run: actor}}}, collect: 1, next: hold}
  hold: {run: actor, with: {do: wait}}
`))
	opens(b, p, "/ui/runs/"+p.mapped(2000, 2001))
}

func BenchmarkAMapOf1000(b *testing.B) {
	p := newPage(b, flowFiles("many", `
start: texts
nodes:
  texts: {map: "${{ input.list }}", max: 1000, parallel: 100, flow: {nodes: {s: {wait: 1ms}}}, collect: 1, next: hold}
  hold: {run: actor, with: {do: wait}}
`))
	opens(b, p, "/ui/runs/"+p.mapped(1000, 1)+"/flow")
}

// BenchmarkALookAtALog is what the server does whenever a log that somebody looks at has grown.
func BenchmarkALookAtALog(b *testing.B) {
	p := newPage(b).signIn()
	at := "/ui/live?once=true&page=runs/" + p.logged(100_000, chatter) + "/log"
	for b.Loop() {
		p.get(at).wants(b, 200)
	}
}
