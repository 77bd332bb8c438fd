package httpwire

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func answerOf(contentType, body string) *http.Response {
	return &http.Response{Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body))}
}

func TestEveryKindOfFaultComesBackAsItWent(t *testing.T) {
	for code := range 15 {
		kind := fault.Kind(code)
		sent := fault.New(kind, "what happened").WithHint("<mend> it").WithFindings([]fault.Finding{{Pointer: "/a", Message: "m"}})
		p := ProblemOf(sent)
		if p.Status != fault.HTTPStatus(sent) || p.Title != kind.Title() || p.Type != "urn:aod:fault:"+kind.String() {
			t.Errorf("%+v", p)
		}
		raw, err := Encode(p)
		must(t, err)
		got, ok := ReadProblem(answerOf("application/problem+json; charset=utf-8", string(raw)))
		if diff := cmp.Diff(sent, got.Fault()); diff != "" || !ok {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

func TestAProblemTellsNothingOfAForeignError(t *testing.T) {
	raw, err := Encode(ProblemOf(errors.New("canary")))
	must(t, err)
	want := `{"type":"urn:aod:fault:internal","title":"something went wrong inside AOD","status":500,"detail":"something went wrong inside AOD","code":"internal"}` + "\n"
	if string(raw) != want {
		t.Errorf("%s", raw)
	}
}

func TestTheMembersOfAProblemHaveTheirOrder(t *testing.T) {
	p := StatusProblem(502, CodeUnitFailed, "<d>", "h")
	p.Rule, p.Run, p.Findings = "r", "id", []fault.Finding{{Message: "m"}}
	raw, err := Encode(p)
	must(t, err)
	want := `{"type":"urn:aod:fault:unit_failed","title":"Bad Gateway","status":502,"detail":"<d>","code":"unit_failed","rule":"r","hint":"h","findings":[{"message":"m"}],"run":"id"}` + "\n"
	if string(raw) != want {
		t.Errorf("%s", raw)
	}
}

func TestProblemsOfOtherServers(t *testing.T) {
	for _, c := range []struct {
		name, contentType, body string
		is                      bool
		want                    fault.Kind
		message                 string
	}{
		{"a unit that failed", TypeProblem, `{"code":"unit_failed","detail":"d"}`, true, fault.Capsule, "d"},
		{"a code of a newer server", TypeProblem, `{"code":"new","title":"t"}`, true, fault.Unsupported, "t"},
		{"no code", TypeProblem, `{"detail":"d"}`, false, 0, ""},
		{"no word", TypeProblem, `{"code":"busy"}`, false, 0, ""},
		{"another type", TypeJSON, `{"code":"busy","detail":"d"}`, false, 0, ""},
		{"no JSON", TypeProblem, `<html>`, false, 0, ""},
	} {
		p, ok := ReadProblem(answerOf(c.contentType, c.body))
		if ok != c.is || ok && (p.Fault().Kind != c.want || p.Fault().Msg != c.message) {
			t.Errorf("%s: %+v %v", c.name, p, ok)
		}
	}
}

func TestWhatMayBeAskedForAgain(t *testing.T) {
	for kind, want := range map[fault.Kind]bool{fault.Busy: true, fault.Unavailable: true, fault.Internal: false, fault.NotFound: false} {
		if ProblemOf(fault.New(kind, "x")).MayRetry() != want {
			t.Errorf("%s: %v", kind, !want)
		}
	}
}

func TestAPanicIsAnErrorWithoutItsValue(t *testing.T) {
	for want, value := range map[string]any{
		"panic: a value of type string":                "canary",
		"panic: a value of type *errors.errorString":   errors.New("canary"),
		"panic: runtime error: integer divide by zero": nil,
	} {
		zero := 0
		err := Catch(func() error {
			if value == nil {
				_ = 1 / zero
			}
			panic(value)
		})
		var panicked *PanicError
		if !errors.As(err, &panicked) || err.Error() != want || len(panicked.Stack) == 0 {
			t.Errorf("%v, want %s", err, want)
		}
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("%v", err)
		}
	}()
	_ = Catch(func() error { panic(http.ErrAbortHandler) })
	t.Error("a handler that wants its connection cut was held")
}
