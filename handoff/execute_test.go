package handoff

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExecute(t *testing.T) {
	w := newWorld(t)
	w.out("tmp123", "T")
	w.out("g.txt", "G")
	w.makes("r.pdf")
	rec := w.do("POST", "/execute", `{"capsule":"callee","input":{"fs":["data.csv","g.txt"]},"files":{"data.csv":"/io/handoff/outgoing/tmp123","f":"g.txt"},"session":"unknown fields are taken"}`)
	want := executed{Success: true, Output: json.RawMessage(`{}`), Files: map[string]string{"r.pdf": "/io/handoff/incoming/r.pdf"}, Session: idOf(100)}
	if diff := cmp.Diff(want, answered[executed](t, rec, 200)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"data.csv": "T", "g.txt": "G"}, w.runs.copied[0]); diff != "" {
		t.Error(diff)
	}
	if got := string(w.runs.calls[0].Args.JSON()); got != `{"fs":["data.csv","g.txt"],"f":"g.txt"}` {
		t.Error(got)
	}
}

func TestExecuteThatFailsIsAnAnswer(t *testing.T) {
	w := newWorld(t)
	w.runs.outcome = func(id string, _ Call) Result {
		return Result{ID: id, Ended: true, State: "failed", Error: &Failure{Message: "boom"}}
	}
	const want = `{"success":false,"output":null,"files":null,"error":"boom","session_id":"00000000-0000-7000-8000-000000000100"}` + "\n"
	if rec := w.do("POST", "/execute", `{"capsule":"callee","input":{}}`); rec.Code != 200 || rec.Body.String() != want {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestExecuteIsUnderTheSameRules(t *testing.T) {
	w := newWorld(t)
	w.out("a", "A")
	w.out("b", "B")
	cases := map[string]struct {
		body   string
		status int
		rule   Rule
	}{
		"a unit that is not granted":   {`{"capsule":"other","input":{}}`, 403, RuleGrant},
		"a unit that isn't there":      {`{"capsule":"missing","input":{}}`, 404, ""},
		"a circle":                     {`{"capsule":"caller","input":{}}`, 409, RuleCycle},
		"a broken contract":            {`{"capsule":"callee","input":{"n":"x"}}`, 422, ""},
		"no name":                      {`{"capsule":"","input":{}}`, 400, ""},
		"no capsule":                   {`{"input":{}}`, 422, ""},
		"no input":                     {`{"capsule":"callee"}`, 422, ""},
		"bad JSON":                     {`{"capsule"}`, 422, ""},
		"files of the wrong type":      {`{"capsule":"callee","input":{},"files":["a"]}`, 422, ""},
		"a file of the host":           {`{"capsule":"callee","input":{"f":"x"},"files":{"x":"/etc/passwd"}}`, 422, ""},
		"a file that nobody names":     {`{"capsule":"callee","input":{},"files":{"x":"a"}}`, 422, ""},
		"another file that is unnamed": {`{"capsule":"callee","input":{"f":"b"},"files":{"x":"a"}}`, 422, ""},
		"two files for one name":       {`{"capsule":"callee","input":{"fs":["x","./x"]},"files":{"x":"a","./x":"b"}}`, 422, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if p := answered[problem](t, w.do("POST", "/execute", c.body), c.status); Rule(p.Rule) != c.rule {
				t.Errorf("%+v", p)
			}
		})
	}
	if w.runs.started() != 0 {
		t.Errorf("%d started", w.runs.started())
	}
}
