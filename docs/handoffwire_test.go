package docs_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
)

const (
	callID = "01a1fec5-c4b2-7f39-abce-c98bbd79863c"
	rootID = "01a1fec5-bb0e-7cf5-89c0-45c40694fb8e"
)

// A request that the guide shows is taken, and what the guide shows as its answer has the
// shape of what is answered.
func TestTheAnswersShownAreThoseGiven(t *testing.T) {
	report := handoff.Result{Ended: true, State: "completed", Success: true, Output: json.RawMessage(`{"rows": 60, "chart": "chart.svg"}`)}
	failed := handoff.Result{Ended: true, State: "failed", Error: &handoff.Failure{
		Category: "AgentError", Kind: "capsule_error", Type: "CapsuleError", Message: "no column of the table holds numbers",
	}}
	call, execution := shownIn(t, "POST /handoff")[0], shownIn(t, "Capsules of other orchestrators")[0]
	cases := []struct {
		name, grant, method, path, body string
		callee                          handoff.Result
		section                         string // "": nothing is answered
		nth                             int    // JSON block of the section
	}{
		{"a callee's result", "csv-report", "POST", "/handoff", call, report, "POST /handoff", 1},
		{"a callee's failure", "csv-report", "POST", "/handoff", call, failed, "POST /handoff", 2},
		{"a call that goes on", "csv-report", "POST", "/handoff?wait=false", call, handoff.Result{State: "running"}, "POST /handoff", 3},
		{"whom it may call", "hello", "GET", "/capsules", "", report, "GET /capsules", 0},
		{"progress", "csv-report", "POST", "/progress", shownIn(t, "POST /progress")[0], report, "", 0},
		{"a judgement", "csv-report", "POST", "/validate", shownIn(t, "POST /validate")[0], report, "POST /validate", 1},
		{"who asks", "csv-report", "GET", "/run", "", report, "GET /run", 0},
		{"what to work on", "csv-report", "GET", "/invocation", "", report, "GET /invocation", 0},
		{"its own result", "csv-report", "POST", "/invocation/result", shownIn(t, "POST /invocation/result")[0], report, "", 0},
		{"health", "csv-report", "GET", "/health", "", report, "GET /health", 0},
		{"a refusal", "csv-report", "POST", "/handoff", `{"target": "pdf-text"}`, report, "Refusals", 0},
		{"another orchestrator's capsule", "csv-report", "POST", "/execute", execution, report, "Capsules of other orchestrators", 1},
		{"its failure", "csv-report", "POST", "/execute", execution, failed, "Capsules of other orchestrators", 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			request := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			request.Header.Set("Content-Type", "application/json")
			caller(t, c.grant, c.callee).ServeHTTP(answer, request)
			if c.section == "" {
				if answer.Code != http.StatusNoContent {
					t.Errorf("%d: %s", answer.Code, answer.Body)
				}
				return
			}
			if err := sameShape(shownIn(t, c.section)[c.nth], answer.Body.String()); err != nil {
				t.Errorf("%v\n%s", err, answer.Body)
			}
		})
	}
}

// shownIn returns the JSON blocks of a section of the guide.
func shownIn(t *testing.T, section string) []string {
	t.Helper()
	text, _ := readGuide(t, handoffGuide)
	var shown []string
	for _, m := range fences.FindAllStringSubmatch(sectionOf(t, text, section), -1) {
		if m[1] == "json" {
			shown = append(shown, m[3])
		}
	}
	return shown
}

// caller is the handler of a run that may call one unit, with the files that the guide's
// examples hand over.
func caller(t *testing.T, grant string, callee handoff.Result) http.Handler {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, name := range []string{"io/handoff/outgoing/sales.csv", "io/handoff/outgoing/q3/sales.csv", "callee/chart.svg"} {
		writeFile(t, at(name), "a,b\n")
	}
	for _, name := range []string{"io/handoff/incoming", "placed"} {
		if err := os.MkdirAll(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if callee.Success {
		callee.Files = []handoff.Output{{Name: "chart.svg", Path: at("callee/chart.svg"), SizeBytes: 4, SHA256: strings.Repeat("0", 64), Field: "chart"}}
	}
	return capsuleapi.NewHandler(handoff.Caller{
		Run: callID, Root: rootID, Parent: rootID, Unit: "planner",
		Path:     []handoff.Step{{Run: rootID, Unit: "root"}, {Run: callID, Unit: "planner"}},
		Deadline: time.Now().Add(time.Minute), Grants: []string{grant},
		Outgoing: at("io/handoff/outgoing"), Incoming: at("io/handoff/incoming"), Placed: at("placed"),
		Input: json.RawMessage(`{"title": "May", "table": "sales.csv"}`), Result: at("result.json"),
	}, exampleRuns{callee}, handoff.Limits{}, nil)
}

// exampleRuns has the examples as its units, and one end for every call.
type exampleRuns struct{ callee handoff.Result }

func (exampleRuns) Unit(_ context.Context, name string) (*handoff.Unit, error) {
	c, err := capsule.Load(filepath.Join("../examples/capsules", name))
	if err != nil {
		return nil, err
	}
	return &handoff.Unit{Name: name, Description: c.Description, Contract: c.Contract}, nil
}

func (exampleRuns) Start(context.Context, handoff.Call) (string, error) { return callID, nil }

func (r exampleRuns) Await(context.Context, string) (handoff.Result, error) { return r.callee, nil }

func (exampleRuns) Cancel(context.Context, string, string) error { return nil }

func (exampleRuns) Recall(context.Context, handoff.Call) (string, error) { return "", nil }

func (exampleRuns) LastWords(context.Context, string) string { return "" }

func (exampleRuns) Messages(context.Context, int64) ([]api.HeardMessage, error) { return nil, nil }

func (exampleRuns) Artifact(context.Context, handoff.Artifact) error { return nil }

func (exampleRuns) Progress(handoff.Progress) {}

func (exampleRuns) Ask(context.Context, handoff.Question) (handoff.Answer, error) {
	return handoff.Answer{Option: handoff.Approve}, nil
}

func (exampleRuns) Told(context.Context, string) iter.Seq[handoff.Progress] {
	return func(func(handoff.Progress) bool) {}
}
