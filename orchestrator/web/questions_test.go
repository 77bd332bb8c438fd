package web_test

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/questions"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// asking is a flow that asks, with a form and something to look at.
var asking = map[string]string{
	"asks/agent.yaml":  "name: asks\nkind: flow\n",
	"asks/schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
	"asks/flow.yaml": `start: approve
nodes:
  approve:
    ask: Send ${{ input.topic }}?
    show: { letter: "${{ input.letter }}", remarks: ["greet them", "<i>thank</i> them"], more: { a: 1 } }
    form:
      type: object
      required: [copies]
      properties: { copies: { type: integer, maximum: 9 }, words: { type: array, items: { type: string } } }
    next: { approve: end, reject: end }
`,
}

// ask begins a run of the flow, and returns its id and its question's.
func (p *page) ask(topic string) (run, question string) {
	p.t.Helper()
	return p.asks(spool.Submission{Unit: "asks", Input: []byte(`{"topic":"` + topic + `","letter":"Dear\nall,\u202e"}`)})
}

// asks begins a run that asks a person, and returns its id and its question's.
func (p *page) asks(what spool.Submission) (run, question string) {
	p.t.Helper()
	record, _, err := p.svc.Submit(trusted.Context(p.t), what)
	must(p.t, err)
	p.t.Cleanup(func() { // the server's end waits for it
		if _, err := p.svc.Cancel(context.WithoutCancel(trusted.Context(p.t)), record.ID, ""); err != nil && !fault.Is(err, fault.Conflict) {
			p.t.Error(err)
		}
	})
	p.until(record.ID, func(api.Record) bool {
		list, err := p.svc.Questions.List(trusted.Context(p.t), questions.Filter{Run: record.ID})
		must(p.t, err)
		for _, q := range list.Questions {
			question = q.ID
		}
		return question != ""
	})
	return record.ID, question
}

func TestAQuestionIsAnsweredOnItsPage(t *testing.T) {
	t.Parallel()
	p := newPage(t, asking).signIn(access.Read, access.Run)
	run, id := p.ask("<script>alert(1)</script>")
	at := "/ui/questions/" + id
	p.get("/ui/questions").wants(t, 200, "Send &lt;script&gt;alert(1)&lt;/script&gt;?", `href="./questions/`+id, "asks, approve")
	p.get(at).wants(t, 200, "Dear\nall,\uFFFD", "<li>greet them</li><li>&lt;i&gt;thank&lt;/i&gt; them</li>", `name="/copies"`, `name="add" value="/words"`, `value="approve">Approve`, `value="reject"`, `href="../runs/`+run)
	p.get("/ui/runs/"+run).wants(t, 200, "Questions to people", "../questions/"+id+"?back=run")

	t.Run("a list takes and loses rows without script", func(t *testing.T) {
		p.post(at, "add", "/words", "/copies", "4", "/words/0", "zebra", "note", "so").wants(t, 200, "zebra", `name="/words/1"`, `value="4"`, ">\nso</textarea>")
		p.post(at, "less", "/words/0", "/words/0", "zebra", "/words/1", "ocelot").wants(t, 200, "ocelot").lacks(t, "zebra")
	})
	t.Run("what is wrong stands at its field, and the rest stays", func(t *testing.T) {
		a := p.post(at, "action", "approve", "/copies", "12", "/words/1", "x<y", "note", "it\r\nwill do", "by", "Ann").wants(t, 422, `value="12"`, "x&lt;y", "it\nwill do", `value="Ann"`, `aria-invalid="true"`)
		if strings.Contains(a.body, "<h1>This") {
			t.Error("the form is gone")
		}
		p.post(at, "action", "approve", "/copies", "many").wants(t, 422, "isn&#39;t a whole number")
		p.post(at, "action", "sing", "/copies", "1").wants(t, 422, "no answer")
	})
	t.Run("the answer is kept, and told with the token that gave it", func(t *testing.T) {
		a := p.post(at, "action", "approve", "/copies", "3", "note", "it will\r\ndo <b>", "by", "Ann Ä").leads(t, "../questions?kept="+id)
		p.get("/ui/questions?kept="+id).wants(t, 200, "Your answer is kept: Approve", "Nobody is asked anything")
		p.get(at).wants(t, 200, "Answered", "Ann Ä, by their own word, with the token <b>read</b>", "it will\ndo &lt;b&gt;", "<dt>copies</dt>")
		p.get("/ui/runs/"+run).wants(t, 200, "Ann Ä, by their own word")
		if cookies := a.Cookies(); len(cookies) != 1 || cookies[0].Value != url.QueryEscape("Ann Ä") || !cookies[0].HttpOnly {
			t.Error(cookies)
		}
	})
	t.Run("whoever is later sees who was quicker", func(t *testing.T) {
		p.post(at, "action", "reject", "/copies", "3").wants(t, 409, "This answer wasn’t kept", "Ann Ä", "<b>read</b>")
		p.post(at, "action", "approve", "/copies", "3", "note", "it will\ndo <b>", "by", "Ann Ä", "back", "run").leads(t, "../runs/"+run)
	})
	_, next := p.ask("more")
	p.get("/ui/questions/"+next).wants(t, 200, `name="by" value="Ann Ä"`)
}

func TestWhoMayNotAnswerMayLook(t *testing.T) {
	t.Parallel()
	p := newPage(t, asking)
	run, id := p.ask("it")
	at := "/ui/questions/" + id
	p.get(at).leads(t, "../login?next="+url.QueryEscape("questions/"+id))
	p.post("/ui/login", "token", token, "next", "questions/"+id).leads(t, "./questions/"+id)
	p.client = p.newBrowser()
	p.signIn(access.Read)
	if a := p.get(at).wants(t, 200, "Send it?", "sign in with a token that may run"); strings.Contains(a.body, "<footer>") {
		t.Error("there are buttons")
	}
	p.post(at, "action", "approve", "/copies", "3").wants(t, http.StatusForbidden)
	_, err := p.svc.Cancel(trusted.Context(t), run, "")
	must(t, err)
	p.ended(run)
	p.get(at).wants(t, 200, "<b>Closed</b>: its run ended before somebody answered.")
	p.get("/ui/questions/0198c0de-0000-7000-8000-000000000000").wants(t, 404)
	p.get("/ui/questions/<b>").wants(t, 404)
	p.get("/ui/runs/"+run+"/state/files/..%2fx").wants(t, 404)
}

func TestThePageOfAQuestionThatNamesWhoAnswers(t *testing.T) {
	t.Parallel()
	named := maps.Clone(asking)
	named["asks/flow.yaml"] = strings.Replace(asking["asks/flow.yaml"], "    form:", "    approvers: [team:legal]\n    form:", 1)
	p := newPage(t, named).signIn()
	run, id := p.ask("it")
	at := "/ui/questions/" + id
	p.get("/ui/questions").wants(t, 200, "for team:legal")
	p.get(at).wants(t, 200, "May be answered by <b>team:legal</b> alone", "Others answer it", `href="../runs/`+run).lacks(t, "<footer>")
	p.post(at, "action", "approve", "/copies", "3").wants(t, http.StatusForbidden, "the question is answered by team:legal alone")
	lea, err := p.tokens.Add(access.Grant{Name: "lea", Scopes: []access.Scope{access.Approve}, Teams: []string{"legal"}})
	must(t, err)
	p.client = p.newBrowser()
	p.post("/ui/login", "token", lea, "next", "questions").leads(t, "./questions")
	p.get("/ui/questions").wants(t, 200, `href="./questions/`+id)
	p.get(at).wants(t, 200, "Send it?", "Dear\nall", `value="approve">Approve`).lacks(t, `href="../runs/`+run)
	p.get("/ui/runs/"+run).wants(t, http.StatusForbidden)
	p.post(at, "action", "approve", "/copies", "3").leads(t, "../questions?kept="+id)
	p.get("/ui/questions?kept="+id).wants(t, 200, "Your answer is kept: Approve")
	p.ended(run)
}

func TestModelCallsAreShown(t *testing.T) {
	t.Parallel()
	p := newPage(t).signIn(access.Read)
	id := p.ran("", "x")
	at := "/ui/runs/" + id + "/models"
	p.get(at).wants(t, 200, "This run asked no model.")
	dir, err := p.svc.Files.RunDir(trusted.Context(t), id)
	must(t, err)
	lines := `{"n":1,"at":"2026-11-29T07:00:00Z","dialect":"chat","model":"<i>small","provider":"made-up","status":200,"tokens":{"input":1000,"cached":620,"output":9},"charged":1009,"ms":12.5,"id":"a","request":{"messages":[{"role":"user","content":"Say <b>hi</b>"}],"tools":[{"name":"look"}]},"answer":{"choices":[{"message":{"role":"assistant","content":"hi"}}]}}
{"n":2,"at":"2026-11-29T07:00:01Z","dialect":"chat","model":"small","status":402,"tokens":{"input":0,"output":0},"charged":0,"ms":0,"id":"b"}
`
	must(t, os.WriteFile(filepath.Join(dir, layout.Transcript), []byte(lines), 0o600))
	p.get(at).wants(t, 200, "&lt;i&gt;small", "62 %", "1,000", "not priced", "402", `models/2"`)
	p.get(at+"?after=1").wants(t, 200, `id="c2"`, "From the first")
	p.get(at+"/1").wants(t, 200, "Say &lt;b&gt;hi&lt;/b&gt;", `<p class="text">hi</p>`, "1 tool was offered: look")
	p.get(at+"/2").wants(t, 200, "What was said isn’t kept", "transcripts are off")
	for _, n := range []string{"3", "0", "-1", "x", "99999999999999999999"} {
		p.get(at+"/"+n).wants(t, 404)
	}
	p.get("/ui/runs/"+id+"/changes").wants(t, 404, "What to do")
	p.get("/ui/runs/"+id+"/changes.patch").wants(t, 404)
}
