package httpwire

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestWhoWantsProblems(t *testing.T) {
	for accept, want := range map[string]bool{
		"":                             false,
		"*/*":                          false,
		"application/json":             false,
		"application/problem+json":     true,
		"Application/Problem+JSON;q=1": true,
		"application/json, application/problem+json; q=0.5": true,
		"application/problem+jsonx, ;;,":                    false,
	} {
		r := &http.Request{Header: http.Header{"Accept": {"text/plain", accept}}}
		if WantsProblem(r) != want {
			t.Errorf("%q: %v", accept, !want)
		}
	}
}

func TestAFailureAsOneText(t *testing.T) {
	zero := 0
	failure := Failure{
		Type: "Oops", Message: "no\x1b[31m \u202ecolumn", Hint: "mend it", ExitCode: &zero, Words: "a\tb\r\nc",
		Findings: []fault.Finding{{Pointer: "/a", Message: "is wrong"}, {Message: "as a whole", Hint: "so"}},
	}
	want := "Oops: no\ufffd[31m \ufffdcolumn (exit code 0)\n  /a: is wrong\n  (root): as a whole (so)\nhint: mend it\nits own last words on stderr:\na\tb\ufffd\nc"
	if got := failure.Text(); got != want {
		t.Errorf("%q", got)
	}
	if got := (Failure{Message: "it failed with exit code 0", ExitCode: &zero}).Text(); strings.Count(got, "exit code") != 1 {
		t.Errorf("%q", got)
	}
}

func TestABodyOfTheShape(t *testing.T) {
	var unit string
	var files map[string]string
	body := Fields{
		"capsule": []byte(`"echo"`), "input": []byte("{}"), "files": []byte(`{"a": "b"}`), "session_id": []byte("7"),
	}
	if err := TakeExecution(body, &unit, &files); err != nil || unit != "echo" || files["a"] != "b" {
		t.Errorf("%q, %v, %v", unit, files, err)
	}
}

func TestABodyThatIsNotTheShape(t *testing.T) {
	var unit string
	var files map[string]string
	err := TakeExecution(Fields{"capsule": []byte("7"), "files": []byte("[]")}, &unit, &files)
	got := UnreadableOf(ProblemOf(err))
	hint := ` (send {"capsule": "NAME", "input": {…}})`
	want := Unreadable{[]Violation{
		{[]string{"body", "input"}, "the field is missing" + hint, "invalid_input"},
		{[]string{"body", "capsule"}, "the field is not text" + hint, "invalid_input"},
		{[]string{"body", "files"}, "the field isn't an object of texts" + hint, "invalid_input"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = UnreadableOf(ProblemOf(TakeExecution(Fields{"capsule": []byte(`""`), "input": []byte("{}")}, &unit, &files)))
	want = Unreadable{[]Violation{{
		[]string{"body", "capsule"}, "the capsule's name is empty (GET /capsules lists them)", "bad_request",
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = UnreadableOf(ProblemOf(fault.New(fault.BadRequest, "no JSON")))
	if diff := cmp.Diff(Unreadable{[]Violation{{[]string{"body"}, "no JSON", "bad_request"}}}, got); diff != "" {
		t.Error(diff)
	}
}
