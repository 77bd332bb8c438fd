package agentapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/fault"
)

// examine checks an agent whose stream takes two seconds of a clock of its own.
func examine(t *testing.T, a *agent) Report {
	t.Helper()
	a.clock = newClock()
	report, err := Check(t.Context(), Target{URL: serve(t, a), TaskType: knownTask}, CheckOptions{now: a.clock.now, seen: a.clock.seen})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func idsWith(r Report, verdicts ...Verdict) []string {
	var ids []string
	for _, c := range r.Checks {
		if slices.Contains(verdicts, c.Verdict) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func TestAGoodAgentIsAllGreen(t *testing.T) {
	report := examine(t, goodAgent())
	if got := idsWith(report, Fail, NotApplicable); got != nil || report.Failed() {
		t.Errorf("no pass: %v\n%s", got, table(t, report))
	}
}

func TestEveryBreachIsFoundAndNothingElse(t *testing.T) {
	found := map[string]bool{"reachable": true, "sync-status": true, "stream-status": true} // have tests of their own
	for _, b := range breaches {
		found[b.rule] = true
		t.Run(b.String(), func(t *testing.T) {
			a := goodAgent()
			b.breaks(a)
			report := examine(t, a)
			if diff := cmp.Diff([]string{b.rule}, idsWith(report, Fail)); diff != "" {
				t.Errorf("%s\n%s", diff, table(t, report))
			}
		})
	}
	for _, c := range checks() {
		if !found[c.id] {
			t.Errorf("no agent breaks the rule %s", c.id)
		}
	}
}

func TestAnswersOfOtherStyles(t *testing.T) {
	cases := map[string]func(*agent){
		"ok alone, and a status of its own":  with(map[string]any{"status": "completed", "ok": true}),
		"status success":                     with(map[string]any{"status": "success"}),
		"outputs that are empty":             with(map[string]any{"outputs": map[string]any{}}),
		"a media type with a charset":        func(a *agent) { a.media = "application/json; charset=utf-8" },
		"data instead of outputs":            finally(map[string]any{"outputs": nil, "data": map[string]any{}}),
		"success instead of ok":              finally(map[string]any{"ok": nil, "status": "done", "success": true}),
		"no health":                          func(a *agent) { a.health = func(w http.ResponseWriter) { w.WriteHeader(404) } },
		"a refusal that is wrapped":          refusing(404, func(asked Request) any { return map[string]any{"detail": refusal(asked)} }),
		"a stream that fails as its refusal": refuseInStream,
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			a := goodAgent()
			change(a)
			if report := examine(t, a); report.Failed() {
				t.Error(table(t, report))
			}
		})
	}
}

func refusal(asked Request) map[string]any {
	return map[string]any{"request_id": asked.RequestID, "ok": false, "outputs": map[string]any{}, "warnings": []string{}}
}

// refuseInStream begins a stream of any task, and ends the unknown ones in a failure.
func refuseInStream(a *agent) {
	a.knows = func(path, task string) bool { return path == StreamPath || task == knownTask }
	a.frames = func(asked Request) []string {
		if asked.TaskType == knownTask {
			return goodFrames(asked.RequestID, asked.TaskType)
		}
		return []string{frame("started", refusal(asked)), frame("final", terminal(asked.RequestID, asked.TaskType, map[string]any{"status": "error", "ok": false}))}
	}
}

func TestAnEndpointThatIsMissingIsFound(t *testing.T) {
	for path, rule := range map[string]string{SyncPath: "sync-status", StreamPath: "stream-status"} {
		a := goodAgent()
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				http.NotFound(w, r)
				return
			}
			a.ServeHTTP(w, r)
		}))
		report, err := Check(t.Context(), Target{URL: url, TaskType: knownTask}, CheckOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{rule}, idsWith(report, Fail)); diff != "" {
			t.Errorf("%s: %s\n%s", path, diff, table(t, report))
		}
	}
}

func TestAnAgentThatIsNotThere(t *testing.T) {
	report, err := Check(t.Context(), Target{URL: nobody(t), TaskType: knownTask}, CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"reachable"}, idsWith(report, Fail, Pass)); diff != "" {
		t.Errorf("%s\n%s", diff, table(t, report))
	}
}

func TestWithoutATaskTheRestIsChecked(t *testing.T) {
	report, err := Check(t.Context(), Target{URL: serve(t, goodAgent())}, CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"reachable", "health", "sync-unsupported-status", "sync-unsupported-body", "refusal-no-payload", "stream-unsupported"}
	if diff := cmp.Diff(want, idsWith(report, Pass)); diff != "" || report.Failed() {
		t.Errorf("%s\n%s", diff, table(t, report))
	}
}

func TestTheInputsAreThoseThatWereGiven(t *testing.T) {
	a := goodAgent()
	var with int
	a.accepts = func(_ string, f fields) bool {
		if f.text("request_id") == "" || f.text("task_type") == "" {
			return false
		}
		if f.text("task_type") == knownTask && string(f.object("inputs")) == `{"text":"a b"}` {
			with++
		}
		return true
	}
	_, err := Check(t.Context(), Target{URL: serve(t, a), TaskType: knownTask}, CheckOptions{Inputs: Object(`{"text":"a b"}`)})
	if err != nil || with != 3 {
		t.Errorf("%d requests had them, %v", with, err)
	}
}

func TestReportAsJSON(t *testing.T) {
	raw, err := json.Marshal(examine(t, goodAgent()))
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(raw, &back); err != nil || back.TaskType != knownTask || len(back.Checks) != len(checks()) {
		t.Errorf("%v %s", err, raw)
	}
	if bytes.Contains(raw, []byte("null")) {
		t.Errorf("a null in %s", raw)
	}
}

func TestTheRulesHaveIDsOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range checks() {
		if seen[c.id] || c.title == "" || c.section == "" {
			t.Errorf("%+v", c)
		}
		seen[c.id] = true
	}
}

func TestParseTargets(t *testing.T) {
	got, err := ParseTargets("http://localhost:8000=LIT_RETRIEVAL, http://agent:8001/a=b/=POLICY_REVIEW ,,https://x/a=b/c,agent.example.com")
	want := []Target{
		{"http://localhost:8000", "LIT_RETRIEVAL"},
		{"http://agent:8001/a=b", "POLICY_REVIEW"},
		{"https://x/a=b/c", ""},
		{"agent.example.com", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if !got[1].Plain() || got[0].Plain() || got[3].Plain() {
		t.Error("plain http to another machine is one, to this one or https is none")
	}
	for _, wrong := range []string{"http://a=", "ftp://a=X", "http://user:hunter2@a=X", "http://a?q=X/", "http://", "http://a b=X"} {
		if _, err := ParseTarget(wrong); !fault.Is(err, fault.Input) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func table(t *testing.T, r Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
