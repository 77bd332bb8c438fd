package capsuleapi

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// refusals are requests that must not be let through, and what stands around them. Their
// answers are in testdata/refusals, under their names.
var refusals = []struct {
	name   string
	change func(w *harness)
	body   string // of POST /handoff
	status int
	rule   handoff.Rule
}{
	{name: "a unit that is not granted", body: `{"target":"other","args":{}}`, status: 403, rule: handoff.RuleGrant},
	{name: "a unit that is not granted and can't be", body: `{"target":"../\u001b[2J","args":{}}`, status: 403, rule: handoff.RuleGrant},
	{name: "a unit that does not exist", body: `{"target":"missing","args":{}}`, status: 404},
	{name: "a unit that calls itself", body: `{"target":"caller","args":{}}`, status: 409, rule: handoff.RuleCycle},
	{name: "a unit that recurs too often", change: func(w *harness) {
		w.runs.Units["caller"].Recursion = 5
		w.caller.Path = []handoff.Step{{Run: idOf(9), Unit: "caller", Recursion: 1}, {Run: idOf(1), Unit: "caller", Recursion: 1}}
	}, body: `{"target":"caller","args":{}}`, status: 409, rule: handoff.RuleCycle},
	{name: "deeper than the operator allows", change: func(w *harness) {
		w.limits.Depth = 1
		w.caller.Path = []handoff.Step{{Run: idOf(9), Unit: "root"}, {Run: idOf(1), Unit: "caller"}}
	}, body: `{"target":"callee","args":{}}`, status: 409, rule: handoff.RuleDepth},
	{name: "deeper than a run on the path allows", change: func(w *harness) {
		w.caller.Path = []handoff.Step{{Run: idOf(8), Unit: "root"}, {Run: idOf(9), Unit: "middle", Budgets: capsule.Budgets{Depth: 1}}, {Run: idOf(1), Unit: "caller"}}
	}, body: `{"target":"callee","args":{}}`, status: 409, rule: handoff.RuleDepth},
	{name: "after the deadline", change: func(w *harness) { w.caller.Deadline = time.Unix(1, 0) }, body: `{"target":"callee","args":{}}`, status: 504, rule: handoff.RuleDeadline},
	{name: "too large arguments", change: func(w *harness) { w.limits.ArgsBytes = 20 }, body: `{"target":"callee","args":{"x":"` + strings.Repeat("y", 20) + `"}}`, status: 413, rule: handoff.RuleSize},
	{name: "a too large body", change: func(w *harness) { w.limits.ArgsBytes = 20 }, body: `{"target":"callee","args":{"x":"` + strings.Repeat("y", httpwire.SmallBody+20) + `"}}`, status: 413, rule: handoff.RuleSize},
	{name: "arguments that break the contract", body: `{"target":"callee","args":{"n":"1","o":3,"x":1}}`, status: 422},
	{name: "arguments that are no object", body: `{"target":"callee","args":[1]}`, status: 422},
	{name: "files that are not there, and names that are none", body: `{"target":"callee","args":{"f":"no.txt","fs":["../x","/etc/passwd","/io/input/x","a\u0000b",""]}}`, status: 422},
	{name: "too many files", change: func(w *harness) { w.limits.Files = 2 }, body: `{"target":"callee","args":{"fs":["a","b","c"]}}`, status: 413, rule: handoff.RuleSize},
	{name: "too large files", change: func(w *harness) {
		w.limits.FileBytes = 9
		w.out("a", "12345")
		w.out("b", "12345")
	}, body: `{"target":"callee","args":{"fs":["a","b"]}}`, status: 413, rule: handoff.RuleSize},
	{name: "a budget of calls that is spent", change: func(w *harness) {
		w.caller.Path = []handoff.Step{{Run: idOf(9), Unit: "root", Budgets: capsule.Budgets{Calls: 3}}, {Run: idOf(1), Unit: "caller"}}
		w.caller.Tree.Restore(handoff.BudgetCalls, idOf(9), 3)
	}, body: `{"target":"callee","args":{}}`, status: 429, rule: handoff.RuleCalls},
	{name: "an operator's limit of calls that is spent", change: func(w *harness) { w.caller.Tree.Restore(handoff.BudgetCalls, idOf(1), 200) }, body: `{"target":"callee","args":{}}`, status: 429, rule: handoff.RuleCalls},
	{name: "a queue that is full", change: func(w *harness) {
		w.runs.Refuse = fault.New(fault.Busy, "the queue is full").WithHint("try again later")
	}, body: `{"target":"callee","args":{}}`, status: 429},
	{name: "an orchestrator that fails", change: func(w *harness) { w.runs.Refuse = errors.New("password=hunter2") }, body: `{"target":"callee","args":{}}`, status: 500},
	{name: "bad JSON", body: `{"target":"callee",}`, status: 400},
	{name: "JSON that is 100,000 deep", body: `{"target":"callee","args":` + strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000) + `}`, status: 400},
	{name: "a field that stands twice", body: `{"target":"callee","target":"other","args":{}}`, status: 400},
	{name: "an argument that stands twice", body: `{"target":"callee","args":{"n":1,"n":2}}`, status: 400},
	{name: "a field that is not known", body: `{"target":"callee","arguments":{}}`, status: 400},
	{name: "a target in capitals", body: `{"Target":"callee","args":{}}`, status: 400},
	{name: "no target", body: `{"args":{}}`, status: 400},
	{name: "a target of the wrong type", body: `{"target":["callee"]}`, status: 400},
	{name: "a timeout without a unit", body: `{"target":"callee","timeout":"30"}`, status: 400},
	{name: "a negative timeout", body: `{"target":"callee","timeout":"-1s"}`, status: 400},
	{name: "text that is not UTF-8", body: "{\"target\":\"callee\",\"args\":{\"f\":\"\xff\"}}", status: 400},
	{name: "nothing", body: ` `, status: 400},
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.change != nil {
				c.change(w)
				w.renew()
			}
			before := w.spent()
			rec := w.do("POST", "/handoff", c.body)
			p := answered[problem](t, rec, c.status)
			if p.Status != c.status || handoff.Rule(p.Rule) != c.rule || rec.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s", rec.Header().Get("Content-Type"), rec.Body)
			}
			golden(t, strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(c.name), rec.Body.Bytes())
			if w.runs.Started() != 0 || w.spent() != before {
				t.Errorf("%d runs were started, %d calls counted", w.runs.Started(), w.spent()-before)
			}
			again := c.status == 503 || c.status == 429 && c.rule == ""
			if again != (rec.Header().Get("Retry-After") != "") {
				t.Errorf("headers %v", rec.Header())
			}
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "refusals", name+".json")
	if *update {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestNoGoldenFileIsLeftOver(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/refusals/*.json")
	must(t, err)
	if len(files) != len(refusals) {
		t.Errorf("%d files for %d refusals", len(files), len(refusals))
	}
}

func TestTheChecksHaveTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits = handoff.Limits{Depth: 1, ArgsBytes: 40, Files: 1}
	w.caller.Grants = nil
	w.caller.Path = []handoff.Step{{Run: idOf(9), Unit: "callee"}, {Run: idOf(1), Unit: "caller", Budgets: capsule.Budgets{Calls: 1}}}
	w.caller.Deadline = time.Unix(1, 0)
	w.caller.Tree.Restore(handoff.BudgetCalls, idOf(1), 1)
	args := `{"n":"x","fs":["a","b"],"f":"` + strings.Repeat("x", 40) + `"}`
	unit := w.runs.Units["callee"]
	delete(w.runs.Units, "callee")
	steps := []struct {
		status int
		rule   handoff.Rule
		mend   func()
	}{
		{403, handoff.RuleGrant, func() { w.caller.Grants = []string{"callee"} }},
		{404, "", func() { w.runs.Units["callee"] = unit }},
		{409, handoff.RuleCycle, func() { w.caller.Path[0].Unit = "root" }},
		{409, handoff.RuleDepth, func() { w.limits.Depth = 0 }},
		{504, handoff.RuleDeadline, func() { w.caller.Deadline = time.Time{} }},
		{413, handoff.RuleSize, func() { w.limits.ArgsBytes = 1000 }},
		{422, "", func() { args = `{"fs":["a","b"]}` }},
		{413, handoff.RuleSize, func() { w.limits.Files = 0 }},
		{422, "", func() { w.out("a", "1"); w.out("b", "2") }},
		{429, handoff.RuleCalls, func() { w.caller.Tree.Restore(handoff.BudgetCalls, idOf(1), 0) }},
	}
	for i, step := range steps {
		w.renew()
		p := answered[problem](t, w.do("POST", "/handoff", `{"target":"callee","args":`+args+`}`), step.status)
		if handoff.Rule(p.Rule) != step.rule {
			t.Errorf("step %d: rule %q, want %q", i, p.Rule, step.rule)
		}
		step.mend()
	}
	w.renew()
	w.call(200, args)
}

func TestASecretOrANameIsNotLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.out("s3cret-name", "s3cret-content")
	w.call(200, `{"f":"s3cret-name"}`)
	w.call(422, `{"f":"s3cret-missing"}`)
	w.call(422, `{"s3cret-field":"s3cret-value"}`)
	w.do("POST", "/handoff", `{"target":"s3cret-target"}`, "Idempotency-Key: s3cret-key")
	if log := w.log.String(); strings.Contains(log, "s3cret") || !strings.Contains(log, `"rule":"grant"`) || !strings.Contains(log, idOf(100)) {
		t.Error(log)
	}
}
