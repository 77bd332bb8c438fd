package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/chromedp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules"
	"github.com/agent-on-demand/aod/orchestrator/feature/webhooks"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/quotas"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// tellerFiles are of a flow that asks a person.
var tellerFiles = map[string]string{
	"teller/agent.yaml":  "name: teller\nkind: flow\ndescription: has a report made, and asks what to do with it\n",
	"teller/schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
	"teller/flow.yaml": `
start: make
nodes:
  make: {run: actor, with: {do: files, say: report.txt}, set: {report: "${{ out.report }}"}, next: judge}
  judge:
    ask: "Is it good?"
    show: {report: "${{ state.report }}"}
    form: {type: object, properties: {why: {type: string}}}
    next: {approve: end, reject: end}
output: {report: "${{ state.report }}"}
`,
}

// sceneFiles are of units that a scene needs, beside the actor.
var sceneFiles = []map[string]string{tellerFiles, talker}

// scene is a server with something of each kind, by the first part of its address below /ui/.
type scene map[string][]string

func newScene(p *page) scene {
	p.t.Helper()
	record, _, err := p.svc.Submit(trusted.Context(p.t), spool.Submission{Unit: "teller", Metadata: map[string]string{"case": strings.Repeat("long", 40)}})
	must(p.t, err)
	p.until(record.ID, func(r api.Record) bool { return r.Question != nil })
	asked, err := p.svc.Questions.List(trusted.Context(p.t), questions.Filter{Limit: 1})
	must(p.t, err)
	timer, _ := orchestrator.FeatureOf[*schedules.Scheduler](p.svc)
	_, _, err = timer.Put(trusted.Context(p.t), "nightly", api.ScheduleSpec{Unit: "actor", Cron: "@daily"}, nil)
	must(p.t, err)
	said := p.post("/ui/chat", "unit", "talker").wants(p.t, http.StatusSeeOther).Header.Get("Location")
	all := scene{
		"runs": {
			record.ID, p.ran("files", strings.Repeat("a-long-name-", 12)+".txt"), p.ran("fail", ""),
			p.ran("complain", strings.Repeat("Unbreakable", 30)), p.begun(),
		},
		"units": {"teller", "actor"}, "questions": {asked.Questions[0].ID}, "schedules": {"nightly"}, "workers": {"big"},
		"chat": {strings.TrimPrefix(said, "chat/")},
	}
	told, _ := orchestrator.FeatureOf[*webhooks.Feature](p.svc)
	hook, err := told.Add(trusted.Context(p.t), api.WebhookRequest{URL: "https://hook.example/" + strings.Repeat("long-", 20), Events: []string{api.WebhookRunTimeout}})
	must(p.t, err)
	all["webhooks"] = []string{hook.ID}
	p.svc.Quotas.Set(quotas.Given{Teams: map[string]quotas.Bounds{"default": {Queued: 50}}})
	testkit.Eventually(p.t, "the end of what has its outcome", func() bool {
		status, err := p.svc.Figures.OfUnit(trusted.Context(p.t), "actor")
		must(p.t, err)
		return status.Running == 1
	})
	return all
}

// at are the addresses of a pattern: one for each thing of its kind.
func (s scene) at(path string) (all []string) {
	if !strings.Contains(path, "{") {
		return []string{path}
	}
	for _, id := range s[strings.Split(path, "/")[2]] {
		all = append(all, placeholder.ReplaceAllString(path, id))
	}
	return all
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// address is that of a page, with a name for its pictures.
type address struct{ path, name string }

// pages are the addresses of all pages that the server has: of each that is about something in the scene, one for each
// such thing, and of what else it has of that, as its events, for the first one.
func (s scene) pages(p *page) (all []address) {
	p.t.Helper()
	paths := []address{
		{"/ui/runs?state=timeout", "runs-none"},
		{"/ui/runs?unit=teller", "runs-filtered"},
		{"/ui/runs/" + s["runs"][3] + "/compare", "compare"},
		{"/ui/units/teller/flow/edit?node=make", "flow-node"},
	}
	for _, route := range p.web.Routes() {
		path, get := strings.CutPrefix(route.Pattern, "GET /ui/")
		if !get {
			continue
		}
		for i, at := range s.at("/ui/" + path) {
			if i == 0 || strings.HasSuffix(path, "}") {
				name := placeholder.ReplaceAllString(path, strconv.Itoa(i))
				paths = append(paths, address{at, strings.ReplaceAll(name, "/", "-")})
			}
		}
	}
	for _, one := range paths {
		// The others are pieces, files, streams and redirects.
		if a := p.get(one.path); a.StatusCode == http.StatusOK && strings.HasPrefix(a.body, "<!doctype html>") {
			all = append(all, one)
		}
	}
	return append(all, address{"/ui/nothing", "nothing"})
}

// Every page is for everybody: one heading, landmarks, names, and no line that is wider than the narrowest screen.
func TestEveryPageInABrowser(t *testing.T) {
	t.Parallel()
	p := newPage(t, sceneFiles...).signIn()
	all := newScene(p).pages(p)
	if len(all) < 10 {
		t.Fatalf("pages: %q", all)
	}
	const tabs = 3 // the browser has other tests' tabs, too
	for i := range tabs {
		t.Run(fmt.Sprintf("tab %d", i), func(t *testing.T) {
			t.Parallel()
			b := newTab(t, p)
			// The focus may be elsewhere before the browser comes to autofocus: keys are pressed at once.
			b.expect(`^error Failed to load resource: the server responded with a status of 404 \(Not Found\) http://[0-9.:]*/ui/nothing$` +
				`|^info Autofocus processing was blocked`)
			for _, one := range all[i*len(all)/tabs : (i+1)*len(all)/tabs] {
				path := one.path
				b.wide(1280)
				b.open(path)
				b.isAccessible(path)
				b.isReadable(path)
				b.wide(320)
				if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > 320 {
					t.Errorf("%s is %d px wide on a screen of 320: %s", path, wide, eval[string](b, widest))
				}
				b.pictures(one.name)
			}
		})
	}
}

// widest is the first elements that stand out to the right.
const widest = `[...document.querySelectorAll("main *, header *")].filter((e) => e.getBoundingClientRect().right > 320 && !e.closest(".scroll"))
	.slice(0, 3).map((e) => e.cloneNode().outerHTML).join(" ")`

func (b *tab) wide(px int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(px, 900))
}

// controls are the roles of what people use, and of what needs a name as well.
var controls = []string{
	"button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "spinbutton", "slider", "switch", "tab", "listbox", "menuitem",
	"DisclosureTriangle", "table", "image", "img", "navigation", "Date", "DateTime", "radiogroup", "dialog",
}

// isAccessible fails the test unless the page is one for people who don't see it.
func (b *tab) isAccessible(path string) {
	b.t.Helper()
	found := map[string]int{}
	for _, n := range call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored {
			continue
		}
		role, name := textOf(n.Role), textOf(n.Name)
		found[role]++
		if role == "heading" && slices.ContainsFunc(n.Properties, func(p *accessibility.Property) bool {
			return p.Name == accessibility.PropertyNameLevel && string(p.Value.Value) == "1"
		}) {
			found["h1"]++
		}
		if slices.Contains(controls, role) && strings.TrimSpace(name) == "" {
			b.t.Errorf("%s: a %s has no name: %s", path, role, b.html(n))
		}
	}
	for role, want := range map[string]int{"h1": 1, "main": 1} {
		if found[role] != want {
			b.t.Errorf("%s has %d of %s", path, found[role], role)
		}
	}
	if !strings.HasPrefix(path, "/ui/login") && (found["banner"] != 1 || found["navigation"] == 0) {
		b.t.Errorf("%s: landmarks: %v", path, found)
	}
	if title := eval[string](b, "document.title"); !strings.HasSuffix(title, " · AOD") || eval[string](b, "document.documentElement.lang") != "en" {
		b.t.Errorf("%s: title %q", path, title)
	}
}

func textOf(v *accessibility.Value) (text string) {
	if v != nil {
		_ = json.Unmarshal(v.Value, &text)
	}
	return text
}

// html is the element of a node of the accessibility tree.
func (b *tab) html(n *accessibility.Node) string {
	b.t.Helper()
	return call(b, dom.GetOuterHTML, dom.GetOuterHTMLParams{BackendNodeID: n.BackendDOMNodeID}).OuterHTML
}

// pictures writes what the page looks like into the folder that AOD_PICTURES names.
func (b *tab) pictures(name string) {
	b.t.Helper()
	dir := os.Getenv("AOD_PICTURES")
	if dir == "" {
		return
	}
	must(b.t, os.MkdirAll(dir, 0o755))
	eval[bool](b, "document.activeElement?.blur(), scrollTo(0, 0), true") // the keyboard's way was walked before
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		for _, px := range []int64{1280, 360} {
			b.wide(px)
			png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			must(b.t, err)
			must(b.t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, px, theme)), png, 0o644))
		}
	}
}
