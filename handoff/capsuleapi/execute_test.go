package capsuleapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const asProblem = "Accept: text/html, application/problem+json;q=0.9"

func TestExecute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.out("tmp123", "T")
	w.out("g.txt", "G")
	w.out("more", "M")
	w.makes("r.pdf")
	rec := w.do("POST", "/execute", `{"capsule":"callee","input":{"fs":["data.csv","g.txt"]},"files":{"data.csv":"/io/handoff/outgoing/tmp123","f":"g.txt","notes.md":"more"},"session":"unknown fields are taken"}`)
	id := idOf(100)
	want := httpwire.Executed{
		Success: true, Output: json.RawMessage(`{}`), Session: &id,
		Files: []string{"r.pdf"}, FilePaths: map[string]string{"r.pdf": "/io/handoff/incoming/r.pdf"},
	}
	if diff := cmp.Diff(want, answered[httpwire.Executed](t, rec, 200)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"data.csv": "T", "g.txt": "G", "notes.md": "M"}, w.runs.Copied[0]); diff != "" {
		t.Error(diff)
	}
	if got := string(w.runs.Calls[0].Args.JSON()); got != `{"fs":["data.csv","g.txt"],"f":"g.txt"}` {
		t.Error(got)
	}
}

func TestFilesOfASecondCallAreNamedAsTheyLie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makes("r.pdf")
	w.do("POST", "/execute", `{"capsule":"callee","input":{}}`)
	second := answered[httpwire.Executed](t, w.do("POST", "/execute", `{"capsule":"callee","input":{}}`), 200)
	name := idOf(101) + "/r.pdf"
	if len(second.Files) != 1 || second.Files[0] != name || second.FilePaths[name] != "/io/handoff/incoming/"+name {
		t.Errorf("%+v", second)
	}
}

func TestExecuteThatFailsIsAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Words = "Traceback\x1b[31m\n\tKeyError: 'x'"
	exit := 3
	w.runs.Outcome = func(id string, _ handoff.Call) handoff.Result {
		return handoff.Result{ID: id, Ended: true, State: "failed", ExitCode: &exit, Error: &handoff.Failure{Type: "Oops", Message: "boom", Hint: "mend it"}}
	}
	const want = `{"success":false,"output":null,"files":null,"file_paths":null,"error":"Oops: boom (exit code 3)\nhint: mend it\n` +
		`its own last words on stderr:\nTraceback\ufffd[31m\n\tKeyError: 'x'","session_id":null}` + "\n"
	for _, headers := range [][]string{nil, {asProblem}} { // the call was made: there is no problem
		rec := w.do("POST", "/execute", `{"capsule":"callee","input":{}}`, headers...)
		if got := strings.ReplaceAll(rec.Body.String(), "\ufffd", `\ufffd`); rec.Code != 200 || got != want {
			t.Errorf("%d %s", rec.Code, got)
		}
	}
	if strings.Contains(w.log.String(), "Traceback") || strings.Contains(w.log.String(), "boom") {
		t.Error("the log tells a program's words", w.log)
	}
}

func TestExecuteIsUnderTheSameRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.out("a", "A")
	w.out("b", "B")
	cases := map[string]struct {
		body   string
		status int // with problems
		rule   handoff.Rule
		broken bool // the body isn't the shape
	}{
		"a unit that is not granted": {`{"capsule":"other","input":{}}`, 403, handoff.RuleGrant, false},
		"a unit that isn't there":    {`{"capsule":"missing","input":{}}`, 404, "", false},
		"a circle":                   {`{"capsule":"caller","input":{}}`, 409, handoff.RuleCycle, false},
		"a broken contract":          {`{"capsule":"callee","input":{"n":"x"}}`, 422, "", false},
		"a file of the host":         {`{"capsule":"callee","input":{"f":"x"},"files":{"x":"/etc/passwd"}}`, 422, "", false},
		"a further file of the host": {`{"capsule":"callee","input":{},"files":{"x":"/etc/passwd"}}`, 422, "", false},
		"a further file with a path": {`{"capsule":"callee","input":{},"files":{"../x":"a"}}`, 422, "", false},
		"a further file that is out": {`{"capsule":"callee","input":{},"files":{"x":"../a"}}`, 422, "", false},
		"a further file that isn't":  {`{"capsule":"callee","input":{},"files":{"x":"none"}}`, 422, "", false},
		"two files for one name":     {`{"capsule":"callee","input":{"fs":["x","./x"]},"files":{"x":"a","./x":"b"}}`, 422, "", false},
		"no name":                    {`{"capsule":"","input":{}}`, 400, "", true},
		"no capsule":                 {`{"input":{}}`, 422, "", true},
		"no input":                   {`{"capsule":"callee"}`, 422, "", true},
		"an input that is a list":    {`{"capsule":"callee","input":[]}`, 422, "", true},
		"bad JSON":                   {`{"capsule"}`, 422, "", true},
		"files of the wrong type":    {`{"capsule":"callee","input":{},"files":["a"]}`, 422, "", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := answered[problem](t, w.do("POST", "/execute", c.body, asProblem), c.status)
			if handoff.Rule(p.Rule) != c.rule {
				t.Errorf("%+v", p)
			}
			if c.broken {
				if u := answered[httpwire.Unreadable](t, w.do("POST", "/execute", c.body), c.status); len(u.Detail) == 0 || u.Detail[0].Msg == "" {
					t.Errorf("%+v", u)
				}
				return
			}
			got := answered[httpwire.Executed](t, w.do("POST", "/execute", c.body), 200)
			if got.Success || got.Error == nil || !strings.Contains(*got.Error, p.Detail) || got.Session != nil || got.Files != nil {
				t.Errorf("%+v", got)
			}
		})
	}
	if w.runs.Started() != 0 {
		t.Errorf("%d started", w.runs.Started())
	}
}

func TestAServerThatCantIsNoAnswerOfARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Refuse = fault.New(fault.Busy, "the queue is full")
	answered[problem](t, w.do("POST", "/execute", `{"capsule":"callee","input":{}}`), 429)
	if calls, _ := w.h.broker.AllRefused(); calls != 0 {
		t.Error("it counts as a refusal")
	}
}

func TestSpentBudgetIsAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits.Calls = 1
	w.renew()
	w.call(200, `{}`)
	if got := answered[httpwire.Executed](t, w.do("POST", "/execute", `{"capsule":"callee","input":{}}`), 200); got.Success {
		t.Errorf("%+v", got)
	}
}
