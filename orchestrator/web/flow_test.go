package web_test

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// chain is a flow whose second step fails if its state says so.
var chain = flowFiles("chain", `
start: one
nodes:
  one: {run: actor, with: {say: hello}, set: {topic: "${{ out.got }}"}, next: two}
  two: {run: actor, with: {do: "${{ state.do }}", say: "${{ state.topic }}"}, set: {got: "${{ out.got }}"}, max_visits: 2, next: {default: deep, exhausted: one}}
  deep: {flow: {nodes: {inner: {run: actor, with: {say: inner}}}}, next: last}
  last: {when: "${{ false }}"}
output: {got: "${{ state.got }}"}
`)

func flowFiles(name, text string) map[string]string {
	return map[string]string{
		name + "/agent.yaml":  "name: " + name + "\nkind: flow\n",
		name + "/schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
		name + "/flow.yaml":   text,
	}
}

// flows runs a flow to its end.
func (p *page) flows(unit, input string) api.Record {
	p.t.Helper()
	record, _, err := p.svc.Submit(trusted.Context(p.t), spool.Submission{Unit: unit, Input: json.RawMessage(input)})
	must(p.t, err)
	return p.ended(record.ID)
}

// nodes are the boxes of a graph, each with the class of its state.
func nodesOf(body string) map[string]string {
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`data-key="([^"]*)">(?:<rect class="grp"[^>]*>)?<(?:a|g)[^>]*>(?:<g class="nd ?([a-z]*)">)?`).FindAllStringSubmatch(body, -1) {
		found[m[1]] = m[2]
	}
	return found
}

func TestAFlowIsRunAgainFromTheStepThatFailed(t *testing.T) {
	t.Parallel()
	p := newPage(t, chain).signIn()
	failed := p.flows("chain", `{"do": "fail", "note": "kept"}`)
	at := "/ui/runs/" + failed.ID
	if failed.Error == nil || failed.Error.Step != "two" {
		t.Fatalf("%+v", failed.Error)
	}
	p.get(at).wants(t, 200, `href="../runs/`+failed.ID+`/flow?from=two#change">Run again from two…</a>`)

	shown := p.get(at+"/flow?from=two").wants(t, 200, `name="field.do" value="&#34;fail&#34;"`,
		`name="field.topic" value="&#34;hello&#34;"`, "1 step is taken over", "1 step of this run is made again, with 1 run of units")
	want := map[string]string{"one": "ok", "two": "bad", "deep": "", "deep/inner": "none", "last": "none"}
	if got := nodesOf(shown.body); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the graph has %v, want %v", got, want)
	}
	for _, row := range []string{"one", "two", "deep", "deep/inner", "last"} {
		if !strings.Contains(shown.body, `<tr id="s-`+row+`">`) {
			t.Errorf("there is no row of %s", row)
		}
	}

	to := p.post(at+"/again", "key", "k", "from", "two", "field.do", ` "say" `, "field.topic", `"hello"`, "field.note", `"kept"`,
		"set", `{"more": [1]}`).wants(t, 303).Header.Get("Location")
	again := p.ended(strings.TrimPrefix(to, "../"))
	if again.Outcome != api.Success || again.RerunOf != failed.ID {
		t.Fatalf("%+v", again)
	}
	state, err := p.svc.Flows.State(trusted.Context(t), again.ID)
	must(t, err)
	if got := string(state.State); got != `{"do":"say","got":"hello","more":[1],"note":"kept","topic":"hello"}` {
		t.Errorf("the state is %s", got)
	}
	steps, err := p.svc.Flows.Steps(trusted.Context(t), again.ID, records.StepFilter{})
	must(t, err)
	if first := steps.Steps[0]; first.Address != "one" || first.Began.After(failed.CreatedAt.Add(failed.FinishedAt.Sub(failed.CreatedAt))) {
		t.Errorf("the first step isn't taken over: %+v", first)
	}
	p.get("/ui/runs/"+again.ID+"/flow").wants(t, 200, "taken over from the earlier run", "Choose this step", "values that a person set before the step")
}

func TestAFormOfAStepIsShownAgainWithWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := newPage(t, chain).signIn()
	failed := p.flows("chain", `{"do": "fail", "long": ["`+strings.Repeat("a long text ", 40)+`"]}`)
	at := "/ui/runs/" + failed.ID
	p.post(at+"/again", "from", "two", "field.do", `ferries`, "set", "").wants(t, 422, `value of &#34;do&#34; isn&#39;t JSON`, `name="field.do" value="ferries"`, "<textarea name=\"field.long\"")
	p.post(at+"/again", "from", "two", "set", `[1]`).wants(t, 422, "isn&#39;t a JSON object")
	p.post(at+"/again", "from", "nowhere", "field.do", `1`).wants(t, 409)
	p.get(at+"/flow?from=nowhere").wants(t, 200, "no longer reaches")
	p.get(at+"/flow?from=failed").wants(t, 200, "Run again from what failed")
	p.get("/ui/runs/"+p.ran("", "x")+"/flow").wants(t, 404)
}

func TestWhoMayOnlyReadIsNotOfferedToRunAgain(t *testing.T) {
	t.Parallel()
	p := newPage(t, chain).signIn(access.Read)
	failed := p.flows("chain", `{"do": "fail"}`)
	if body := p.get("/ui/runs/"+failed.ID+"/flow").wants(t, 200, "Steps").body; strings.Contains(body, "Run again") {
		t.Error("the form is there")
	}
	p.post("/ui/runs/"+failed.ID+"/again", "from", "two").wants(t, 403)
}

func TestHostileTextsOfAFlowStayText(t *testing.T) {
	t.Parallel()
	const evil = `</text></svg><script>alert(1)</script>`
	p := newPage(t, flowFiles("evil", `# `+evil+`
nodes:
  two:
    run: '${{ state.unit ?? "`+evil+`" }}'
    units: [actor]
    with: {do: complain, say: "`+evil+`"}
    next: {"`+"a-b"+`": end, error: two}
    max_visits: 2
`)).signIn()
	record := p.flows("evil", `{"unit": "actor", "`+evil+`": "`+evil+`"}`)
	for _, at := range []string{"/ui/runs/" + record.ID + "/flow", "/ui/runs/" + record.ID + "/flow?from=two%232&node=" + evil, "/ui/units/evil/flow"} {
		body := p.get(strings.ReplaceAll(at, evil, "%3C%2Fsvg%3E%3Cscript%3E")).wants(t, 200, "&lt;script&gt;").body
		if strings.Contains(body, "<script>") || strings.Count(body, "</svg>") != strings.Count(body, "<svg") {
			t.Errorf("%s has markup of the flow", at)
		}
	}
}

func TestAMapOfAThousandItemsIsAShortPage(t *testing.T) {
	t.Parallel()
	p := newPage(t, flowFiles("many", `
nodes:
  texts: {map: "${{ input.list }}", max: 1000, tolerate: 1, parallel: 100, flow: {start: s, nodes: {s: {wait: "${{ item }}"}}}, collect: 1}
`)).signIn()
	waits := strings.Repeat(`"1ms",`, 999) + `"never"`
	record := p.flows("many", `{"list": [`+waits+`]}`)
	body := p.get("/ui/runs/"+record.ID+"/flow").wants(t, 200, "1000/1000, 1 failed", `id="s-texts[999]"`, "100 of 2,001").body
	if elements := strings.Count(body, "<") - strings.Count(body, "</"); len(body) > 300_000 || elements > 3000 {
		t.Errorf("%d bytes, %d elements", len(body), elements)
	}
	if !strings.Contains(body, `href="?open=texts"`) {
		t.Error("the map can't be unfolded")
	}
	unfolded := p.get("/ui/runs/"+record.ID+"/flow?open=texts&page=19&node=texts").wants(t, 200, `texts: 1000/1000, 1 failed`).body
	if got := nodesOf(unfolded); got["texts/s"] != "bad" {
		t.Errorf("%v", got)
	}
}

func TestAFlowThatGoesOnShowsWhatHasntBegun(t *testing.T) {
	t.Parallel()
	p := newPage(t, flowFiles("slow", `
start: both
nodes:
  both: {branches: {a: {run: actor, with: {do: wait}}, b: {ask: "Is it good?"}}, next: after}
  after: {}
`)).signIn()
	record, _, err := p.svc.Submit(trusted.Context(t), spool.Submission{Unit: "slow", Input: json.RawMessage(`{}`)})
	must(t, err)
	want := map[string]string{"both": "", "both/a": "run", "both/b": "ask", "after": "none"}
	p.until(record.ID, func(r api.Record) bool {
		return fmt.Sprint(nodesOf(p.get("/ui/runs/"+record.ID+"/flow").body)) == fmt.Sprint(want)
	})
	p.get("/ui/runs/"+record.ID+"/flow?fold=both").wants(t, 200, `class="nd run"`, `href="?"`)
	page := p.get("/ui/live?once=1&page=runs/"+record.ID+"/flow").wants(t, 200, `"key":"graph"`, `"key":"steps"`)
	if again := p.get("/ui/live?once=1&page=runs/" + record.ID + "/flow"); hashes(page.body) != hashes(again.body) {
		t.Error("what hasn't changed is another")
	}
	p.post("/ui/runs/"+record.ID+"/cancel").wants(t, 303)
	p.ended(record.ID)
	p.get("/ui/runs/"+record.ID+"/flow").wants(t, 200, "the run ended before it", "Run again from a step")
}

// hashes are those of the parts of a page that is followed.
func hashes(body string) string {
	return fmt.Sprint(regexp.MustCompile(`"key":"(graph|state|steps)","hash":"[^"]*"`).FindAllString(body, -1))
}

func TestAUnitsFlowHasItsNumbersAndItsText(t *testing.T) {
	t.Parallel()
	p := newPage(t, chain, flowFiles("typo", "start: one\nnodes:\n  one:\n    run: nobody\n")).signIn()
	p.get("/ui/units/chain/flow").wants(t, 200, "It has not run yet")
	p.get("/ui/units/typo/flow").wants(t, 200, `1 finding, line 4`, `<li id="y4" class="mark">`, html.EscapeString(`there is no unit "nobody"`), `data-key="one"`)
	p.write("typo/flow.yaml", "start: one\nnodes:\n  one: {walk: x}\n")
	p.get("/ui/units/typo/flow").wants(t, 200, "There is no graph of a flow", `<li id="y3" class="mark">`)
	p.get("/ui/units/actor/flow").wants(t, 409)
	p.get("/ui/units/nobody/flow").wants(t, 404)

	q := newPage(t, chain).signIn()
	q.flows("chain", `{"do": "fail"}`)
	q.flows("chain", `{"do": "say"}`)
	q.get("/ui/units/chain/flow").wants(t, 200, "in the last 2 runs", `<code>two</code></th><td class="n">2</td><td class="n">50 %</td>`, `href="?line=1#y5"`)
}
