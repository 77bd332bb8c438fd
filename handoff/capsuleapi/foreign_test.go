package capsuleapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

func TestAHandoffInTheStandardsForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makes("r.pdf")
	const body = `{"target":"callee","args":{"n":1},"session_id":"s-1","caller":"x","a\u001bb":0}`
	got := answered[httpwire.Executed](t, w.do("POST", "/handoff", body), 200)
	id := idOf(100)
	want := httpwire.Executed{
		Success: true, Output: json.RawMessage(`{}`), Session: &id,
		Files: []string{"r.pdf"}, FilePaths: map[string]string{"r.pdf": "/io/handoff/incoming/r.pdf"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	warnings := w.h.Warnings("")
	if len(warnings) != 1 || !strings.HasSuffix(warnings[0], `: "a\x1bb", "caller"`) {
		t.Errorf("%q", warnings)
	}
}

func TestAnyTextOfTheStandardsFormMayNameAFile(t *testing.T) {
	t.Parallel()
	const args = `{"input_image":"graph.png","deep":{"list":["b/c.csv",{"no":"file.txt"}]},"text":"a text: no/file"}`
	w := newWorld(t)
	w.runs.Add("callee", `{"input":{"type":"object"},"output":{"type":"object"}}`)
	w.out("graph.png", "A")
	w.out("b/c.csv", "B")
	answered[httpwire.Executed](t, w.do("POST", "/handoff", `{"target":"callee","args":`+args+`,"session_id":"s"}`), 200)
	if diff := cmp.Diff(map[string]string{"graph.png": "A", "b/c.csv": "B"}, w.runs.Copied[0]); diff != "" {
		t.Error(diff)
	}
	if got := string(w.runs.Calls[0].Args.JSON()); got != args {
		t.Errorf("args %s", got)
	}
	w.do("POST", "/handoff", `{"target":"callee","args":`+args+`}`) // ours says in the contract what a file is
	if len(w.runs.Calls) != 2 || len(w.runs.Calls[1].Files) != 0 {
		t.Errorf("%v", w.runs.Calls[1:])
	}
}

func TestARefusedHandoffInTheStandardsForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const body = `{"target":"other","args":{},"session_id":null}`
	got := answered[httpwire.Executed](t, w.do("POST", "/handoff", body), 200)
	if got.Success || got.Error == nil || !strings.Contains(*got.Error, `may not call "other"`) || !strings.Contains(*got.Error, "tools.yaml") {
		t.Errorf("%+v", got)
	}
	answered[problem](t, w.do("POST", "/handoff", body, asProblem), 403)
	answered[problem](t, w.do("POST", "/handoff", `{"target":"other","args":{}}`), 403)
	answered[httpwire.Unreadable](t, w.do("POST", "/handoff", `{"target":"","session_id":"s"}`), 400)
	answered[problem](t, w.do("POST", "/handoff", `{"target":"callee","timout":"3s"}`), 400)
}

func TestTheStandardsFormIsOursForWhoAsksForProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rec := w.do("POST", "/handoff", `{"target":"callee","args":{},"session_id":"s"}`, asProblem)
	if got := answered[finished](t, rec, 200); got.ID != idOf(100) || !got.Success {
		t.Errorf("%+v", got)
	}
}

func TestWhenEveryCallWasRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if w.h.Warnings("") != nil {
		t.Error("no call was made")
	}
	w.do("POST", "/handoff", `{"target":"other"}`)
	w.do("POST", "/execute", `{"capsule":"caller","input":{}}`)
	warnings := w.h.Warnings("")
	if len(warnings) != 1 || !strings.Contains(warnings[0], "every call that it made was refused (2)") || !strings.Contains(warnings[0], "stands on the path") {
		t.Errorf("%q", warnings)
	}
	_, why, _ := strings.Cut(warnings[0], ": ")
	if again := w.h.Warnings("HandoffRefused: " + why); again != nil {
		t.Errorf("the error of the run tells it, and still there is %q", again)
	}
	w.call(200, `{}`)
	if warnings := w.h.Warnings(""); warnings != nil {
		t.Errorf("one went through: %q", warnings)
	}
}

func TestCallsOfAnEarlierProcessWereNotRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.h.Remember("a key")
	w.do("POST", "/handoff", `{"target":"other"}`)
	if warnings := w.h.Warnings(""); warnings != nil {
		t.Errorf("%q", warnings)
	}
}

const open = `{"input":{"type":"object","properties":{"file":{"type":"string","maxLength":8},"other":{"type":"string"}}},"output":{"type":"object"}}`

func TestFilesThatTheContractDoesNotDeclare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Add("callee", open)
	w.out("a.txt", "A")
	w.out("sub/b.txt", "B")
	cases := []struct {
		name, body, args string
		files            map[string]string
	}{
		{"a name in outgoing", `"input":{"file":"a.txt"}`, `{"file":"a.txt"}`, map[string]string{"a.txt": "A"}},
		{"a list of names", `"input":{"files":["a.txt","sub/b.txt"]}`, `{"files":["a.txt","sub/b.txt"]}`, map[string]string{"a.txt": "A", "sub/b.txt": "B"}},
		{"the form within /io", `"input":{"files":["/io/handoff/outgoing/a.txt"]}`, `{"files":["a.txt"]}`, map[string]string{"a.txt": "A"}},
		{"a name of files", `"input":{"file":"x"},"files":{"x":"a.txt"}`, `{"file":"x"}`, map[string]string{"x": "A"}},
		{"the same, where only the name keeps the contract", `"input":{"file":"/io/handoff/outgoing/a.txt"}`, `{"file":"a.txt"}`, map[string]string{"a.txt": "A"}},
		{"a text", `"input":{"file":"no file","files":["../a.txt","/etc/passwd","",7]}`, `{"file":"no file","files":["../a.txt","/etc/passwd","",7]}`, map[string]string{}},
		{"another field", `"input":{"other":"a.txt"}`, `{"other":"a.txt"}`, map[string]string{}},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := answered[httpwire.Executed](t, w.do("POST", "/execute", `{"capsule":"callee",`+c.body+`}`), 200)
			if !got.Success {
				t.Fatal(*got.Error)
			}
			if args := string(w.runs.Calls[i].Args.JSON()); args != c.args {
				t.Error(args)
			}
			if diff := cmp.Diff(c.files, w.runs.Copied[i]); diff != "" {
				t.Error(diff)
			}
		})
	}
	got := answered[httpwire.Executed](t, w.do("POST", "/execute", `{"capsule":"callee","input":{"file":"sub"}}`), 200)
	if got.Success || !strings.Contains(*got.Error, "a directory") {
		t.Errorf("%+v", got)
	}
}

func TestManyTextsThatAreNoFilesAreTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.Add("callee", open)
	w.limits.Files = 2
	w.renew()
	w.call(200, `{"files":["a","b","c"]}`)
}
