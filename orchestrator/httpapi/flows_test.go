package httpapi

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
)

// addFlow adds the unit "teller": it has a report made, and asks what to do with it.
func (s *server) addFlow() {
	for name, content := range map[string]string{
		"agent.yaml":  "name: teller\nkind: flow\n",
		"schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
		"flow.yaml": `
start: make
nodes:
  make: {run: actor, with: {do: files}, set: {report: "${{ out.report }}", n: "${{ out.n }}"}, next: ask}
  ask: {ask: "Is it good?", show: {report: "${{ state.report }}"}, form: {type: object, properties: {why: {type: string}}}, max_visits: 2, next: {approve: end, reject: ask, exhausted: end}}
output: {n: "${{ state.n }}"}
`,
	} {
		write(s.t, filepath.Join(s.sources, "teller", name), content)
	}
}

// asked returns the one open question.
func (s *server) asked() (q api.Question) {
	s.t.Helper()
	s.until(func() bool {
		page := decode[api.QuestionPage](s.t, s.do("GET", "/v1/questions", "").wants(s.t, 200))
		if len(page.Questions) == 1 {
			q = page.Questions[0]
		}
		return len(page.Questions) == 1
	})
	return q
}

func TestAUnitTellsWhoCallsIt(t *testing.T) {
	t.Parallel()
	s := unstarted(t)
	s.addFlow()
	s.start(Options{Token: token})
	actor := func() api.Unit { return decode[api.Unit](t, s.do("GET", "/v1/units/actor", "").wants(t, 200)) }
	if got := actor(); !slices.Equal(got.CalledBy, []string{"teller"}) || got.Status.Schedules != nil {
		t.Errorf("called by %q, run by %q", got.CalledBy, got.Status.Schedules)
	}
	s.do("PUT", "/v1/schedules/nightly", `{"unit":"actor","cron":"@daily"}`).wants(t, 201)
	s.do("PUT", "/v1/schedules/aside", `{"unit":"actor","cron":"@daily"}`).wants(t, 201)
	s.do("POST", "/v1/schedules/aside/pause", "").wants(t, 200)
	s.do("PUT", "/v1/units/asker", archiveOf(t, map[string]string{
		"agent.yaml": "name: asker\nkind: flow\n", "flow.yaml": "nodes: {a: {run: teller}, b: {run: actor}}\nstart: a\n",
		"schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
	}), tarType).wants(t, 201)
	if got := actor(); !slices.Equal(got.CalledBy, []string{"asker", "teller"}) || !slices.Equal(got.Status.Schedules, []string{"aside", "nightly"}) {
		t.Errorf("called by %q, run by %q", got.CalledBy, got.Status.Schedules)
	}
	s.do("DELETE", "/v1/units/asker", "").wants(t, 204)
	if got := actor(); !slices.Equal(got.CalledBy, []string{"teller"}) {
		t.Errorf("called by %q", got.CalledBy)
	}
}

func TestAFlowIsShownAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := unstarted(t)
	s.addFlow()
	s.start(Options{Token: token})
	const at = "/v1/units/teller/flow"
	file := filepath.Join(s.sources, "teller", "flow.yaml")
	read := func(query string) api.UnitFlow {
		t.Helper()
		return decode[api.UnitFlow](t, s.do("GET", at+query, "").wants(t, 200))
	}
	good := read("")
	if !strings.Contains(good.Text, "max_visits: 2") || !strings.Contains(string(good.Graph), `"max_visits":2`) || good.Version == "" || len(good.Findings) != 0 {
		t.Errorf("%+v", good)
	}

	write(t, file, "start: make\nnodes:\n  make:\n    run: nobody\n")
	missing := read("")
	if len(missing.Findings) != 1 || missing.Findings[0].Line != 4 || missing.Findings[0].Message != `there is no unit "nobody"` || missing.Graph == nil {
		t.Errorf("%+v", missing)
	}

	write(t, file, "start: make\nnodes:\n  make: {walk: actor}\n")
	broken := read("")
	if broken.Graph != nil || broken.Version != "" || !strings.Contains(broken.Text, "walk") || len(broken.Findings) == 0 || broken.Findings[0].Line != 3 {
		t.Errorf("%+v", broken)
	}
	for _, shown := range []api.UnitFlow{good, missing} {
		if diff := cmp.Diff(shown, read("?version="+shown.Version)); diff != "" {
			t.Error(diff)
		}
	}

	write(t, filepath.Join(s.sources, "fresh", "agent.yaml"), "name: fresh\nkind: flow\n")
	write(t, filepath.Join(s.sources, "fresh", "schema.json"), `{"input": {"type": "object"}, "output": {"type": "object"}}`)
	write(t, filepath.Join(s.sources, "fresh", "flow.yaml"), "nodes: []\n")
	if never := decode[api.UnitFlow](t, s.do("GET", "/v1/units/fresh/flow", "").wants(t, 200)); never.Text != "nodes: []\n" || len(never.Findings) == 0 {
		t.Errorf("%+v", never)
	}
	s.do("GET", at+"?version=0123456789abcdef", "").wants(t, 404)
	s.do("GET", at+"?version=../x", "").wants(t, 404)
	s.do("GET", "/v1/units/actor/flow", "").wants(t, 409)
	s.do("GET", "/v1/units/nobody/flow", "").wants(t, 404)
}

func TestAFlowOverHTTP(t *testing.T) {
	t.Parallel()
	s := unstarted(t)
	s.addFlow()
	s.start(Options{Token: token})
	run := decode[api.Record](t, s.do("POST", "/v1/runs", `{"unit":"teller","input":{"x":1}}`).wants(t, 202)).ID
	q := s.asked()
	if q.Run != run || q.Address != "ask" || q.Unit != "teller" || !strings.Contains(string(q.Show), `"$file"`) {
		t.Errorf("%+v", q)
	}
	if got := decode[api.Record](t, s.do("GET", "/v1/runs/"+run, "").wants(t, 200)); got.Flow == nil || got.Flow.Steps != 2 || got.Flow.Open != 1 {
		t.Errorf("counts %+v", got.Flow)
	}

	page := decode[api.StepPage](t, s.do("GET", "/v1/runs/"+run+"/steps?limit=1", "").wants(t, 200))
	if len(page.Steps) != 1 || page.Steps[0].Address != "make" || page.Steps[0].Run == "" || page.Next == nil {
		t.Fatalf("%+v", page)
	}
	rest := decode[api.StepPage](t, s.do("GET", "/v1/runs/"+run+"/steps?after=1", "").wants(t, 200))
	if len(rest.Steps) != 1 || rest.Steps[0].State != api.OpenStep || rest.Next != nil {
		t.Errorf("%+v", rest)
	}

	if graph := decode[map[string]any](t, s.do("GET", "/v1/runs/"+run+"/flow", "").wants(t, 200)); graph["nodes"] == nil {
		t.Errorf("the graph is %v", graph)
	}
	state := decode[api.FlowState](t, s.do("GET", "/v1/runs/"+run+"/state", "").wants(t, 200))
	var values map[string]any
	must(t, json.Unmarshal(state.State, &values))
	if values["x"] != 1.0 || values["n"] != 1.0 || len(state.Files) != 1 || state.Files[0].Name != "report.txt" {
		t.Errorf("%s %+v", state.State, state.Files)
	}
	if got := s.do("GET", "/v1/runs/"+run+"/state/files/report.txt", "").wants(t, 200); got.body != "0123456789" {
		t.Errorf("%q", got.body)
	}
	s.do("GET", "/v1/runs/"+run+"/state/files/other.txt", "").wants(t, 404)
	s.do("GET", "/v1/runs/"+run+"/steps?limit=0", "").wants(t, 400)

	to := "/v1/questions/" + q.ID
	if one := decode[api.Question](t, s.do("GET", to, "").wants(t, 200)); one.Run != run || !one.MayAnswer || len(one.Files) != 1 || one.Files[0].Name != "report.txt" {
		t.Errorf("%+v", one)
	}
	if got := s.do("GET", to+"/files/report.txt", "").wants(t, 200); got.body != "0123456789" {
		t.Errorf("%q", got.body)
	}
	s.do("GET", to+"/files/other.txt", "").wants(t, 404)
	s.do("GET", "/v1/questions/x/files/report.txt", "").wants(t, 404)
	for body, status := range map[string]int{`{"action":"maybe"}`: 422, `{"action":"approve","form":{"why":1}}`: 422, `{"action":1}`: 400, `{"act":"approve"}`: 400, `[]`: 400} {
		s.do("POST", to, body).wants(t, status)
	}
	s.do("POST", to, `{"action":"reject","form":{"why":"no"},"by":"ada"}`).wants(t, 204)
	s.do("POST", to, `{"by":"ada","form":{"why":"no"},"action":"reject"}`).wants(t, 204)
	s.do("POST", to, `{"action":"approve"}`).wants(t, 409)
	s.do("POST", "/v1/questions/0199aaaa-0000-7000-8000-000000000001", `{"action":"approve"}`).wants(t, 404)
	s.do("POST", "/v1/questions/x", `{"action":"approve"}`).wants(t, 404)

	second := s.asked()
	if second.Address != "ask#2" || second.ID == q.ID {
		t.Errorf("%+v", second)
	}
	if got := decode[api.QuestionPage](t, s.do("GET", "/v1/questions?run="+run, "").wants(t, 200)); len(got.Questions) != 1 {
		t.Errorf("%+v", got)
	}
	s.do("POST", "/v1/questions/"+second.ID, `{"action":"approve"}`).wants(t, 204)
	s.until(func() bool {
		return decode[api.Record](t, s.do("GET", "/v1/runs/"+run, "").wants(t, 200)).Outcome == api.Success
	})
	s.do("GET", "/v1/runs/"+run+"/state/files/report.txt", "").wants(t, 200)
	if events := s.do("GET", "/v1/runs/"+run+"/events", "").wants(t, 200); !strings.Contains(events.body, "event: node") || !strings.Contains(events.body, "event: question") || strings.Contains(events.body, "Is it good") {
		t.Errorf("%s", events.body)
	}

	actor := s.run(`{}`).ID
	s.do("GET", "/v1/runs/"+actor+"/state", "").wants(t, 409)
	s.do("GET", "/v1/runs/"+actor+"/flow", "").wants(t, 409)
	s.do("GET", "/v1/runs/"+actor+"/steps", "").wants(t, 200)
}
