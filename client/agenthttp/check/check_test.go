package check

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/agenttest"
	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// examine checks an agent whose stream takes two seconds of a clock of its own.
func examine(t *testing.T, a *agenttest.Agent) Report {
	t.Helper()
	a.Clock = agenttest.NewClock()
	report, err := Agent(t.Context(), Target{URL: agenttest.Serve(t, a), TaskType: agenttest.Task}, Options{now: a.Clock.Now, seen: a.Clock.Seen})
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
	report := examine(t, agenttest.Good())
	if got := idsWith(report, Fail, Advice, NotApplicable); got != nil || report.Failed() {
		t.Errorf("no pass: %v\n%s", got, table(t, report))
	}
}

func TestEveryBreachIsFoundAndNothingElse(t *testing.T) {
	found := map[string]bool{"reachable": true, "sync-status": true, "stream-status": true} // have tests of their own
	for _, b := range breaches {
		found[b.rule] = true
		t.Run(b.String(), func(t *testing.T) {
			a := agenttest.Good()
			b.breaks(a)
			report := examine(t, a)
			if diff := cmp.Diff([]string{b.rule}, idsWith(report, Fail)); diff != "" {
				t.Errorf("%s\n%s", diff, table(t, report))
			}
		})
	}
	for _, c := range checks() {
		if !found[c.ID] {
			t.Errorf("no agent breaks the rule %s", c.ID)
		}
	}
}

func TestAnEndpointThatIsMissingIsFound(t *testing.T) {
	for path, rule := range map[string]string{agenthttp.SyncPath: "sync-status", agenthttp.StreamPath: "stream-status"} {
		a := agenttest.Good()
		url := agenttest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				http.NotFound(w, r)
				return
			}
			a.ServeHTTP(w, r)
		}))
		still := agenttest.NewClock().Now // a busy machine makes no stream a slow one
		report, err := Agent(t.Context(), Target{URL: url, TaskType: agenttest.Task}, Options{now: still})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{rule}, idsWith(report, Fail)); diff != "" {
			t.Errorf("%s: %s\n%s", path, diff, table(t, report))
		}
	}
}

func TestAnAgentThatIsNotThere(t *testing.T) {
	report, err := Agent(t.Context(), Target{URL: "http://" + testkit.Nobody(t), TaskType: agenttest.Task}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"reachable"}, idsWith(report, Fail, Pass)); diff != "" {
		t.Errorf("%s\n%s", diff, table(t, report))
	}
}

func TestWithoutATaskTheRestIsChecked(t *testing.T) {
	report, err := Agent(t.Context(), Target{URL: agenttest.Serve(t, agenttest.Good())}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"reachable", "health", "sync-unsupported-status", "sync-unsupported-body", "sync-unsupported-schema", "refusal-no-payload", "stream-unsupported"}
	if diff := cmp.Diff(want, idsWith(report, Pass)); diff != "" || report.Failed() {
		t.Errorf("%s\n%s", diff, table(t, report))
	}
}

func TestTheInputsAreThoseThatWereGiven(t *testing.T) {
	a := agenttest.Good()
	var with int
	a.Accepts = func(_ string, f document.Fields) bool {
		if f.Text("request_id") == "" || f.Text("task_type") == "" {
			return false
		}
		if f.Text("task_type") == agenttest.Task && string(f.Object("inputs")) == `{"text":"a b"}` {
			with++
		}
		return true
	}
	_, err := Agent(t.Context(), Target{URL: agenttest.Serve(t, a), TaskType: agenttest.Task}, Options{Inputs: agenthttp.Object(`{"text":"a b"}`)})
	if err != nil || with != 3 {
		t.Errorf("%d requests had them, %v", with, err)
	}
}

func TestNoValueIsShownInAReport(t *testing.T) {
	for name, h := range agenttest.Leaky {
		t.Run(name, func(t *testing.T) {
			report, err := Agent(t.Context(), Target{URL: agenttest.Serve(t, h), TaskType: agenttest.Task}, Options{
				Call: agenthttp.Options{Token: agenttest.Canary}, Inputs: agenthttp.Object(`{"patient":"` + agenttest.Canary + `"}`),
			})
			raw, _ := json.Marshal(report)
			agenttest.Hides(t, agenttest.Everything(err), string(raw), table(t, report))
		})
	}
}

func TestTheRemoteAgentKeepsEveryRule(t *testing.T) {
	address := agenttest.StartExample(t, "../../..")
	still := agenttest.NewClock().Now // a busy machine makes no stream a slow one
	report, err := Agent(t.Context(), Target{URL: address, TaskType: agenttest.Task}, Options{now: still})
	if err != nil || report.Failed() || report.Count(Pass) < len(checks())-1 {
		t.Errorf("%v\n%s", err, table(t, report))
	}
}

func TestReportAsJSON(t *testing.T) {
	raw, err := json.Marshal(examine(t, agenttest.Good()))
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(raw, &back); err != nil || back.TaskType != agenttest.Task || len(back.Checks) != len(checks()) {
		t.Errorf("%v %s", err, raw)
	}
	if bytes.Contains(raw, []byte("null")) {
		t.Errorf("a null in %s", raw)
	}
}

func TestTheRulesHaveIDsOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range checks() {
		if seen[c.ID] || c.Title == "" || c.Section == "" {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
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
