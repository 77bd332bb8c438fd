package agents

import (
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestFindingsTellWhatTheContractHas(t *testing.T) {
	schema := []byte(`{"input":{"properties":{"a/b":{"enum":["red","gre\"en"]},"list":{}}}}`)
	for said, told := range map[fault.Finding]fault.Finding{
		{Pointer: "/a~1b", Message: `must be one of "red", "gre\"en"`}:                              {Pointer: "/a~1b", Message: `must be one of "red", "gre\"en"`},
		{Pointer: "/list/7/x", Message: `unexpected field "x"`, Foreign: `"x"`}:                     {Pointer: "/list/7/*", Message: `unexpected field "*"`},
		{Pointer: "/list/99999999999", Message: `"a\"b" and "red"`, Hint: `"q"`, Foreign: `"a\"b"`}: {Pointer: "/list/*", Message: `"*" and "red"`, Hint: `"q"`},
		{Message: `the field "list" stands twice`, Foreign: `"list"`}:                               {Message: `the field "list" stands twice`},
		{Message: "too large"}: {Message: "too large"},
	} {
		err := redact(errors.Join(fault.New(fault.Input, "no %s of %q", fault.Foreign(fault.Quote("x")), "u").WithFindings([]fault.Finding{said})), "u", schema)
		diff := gocmp.Diff([]fault.Finding{told}, fault.Public(err).Findings)
		if diff != "" || !fault.Is(err, fault.Input) || fault.Public(err).Msg != `no "*" of "u"` {
			t.Errorf("%v %s", err, diff)
		}
	}
	if err := errors.New("x"); !errors.Is(redact(err, "u", schema), err) || redact(nil, "u", nil) != nil {
		t.Error("other errors are changed")
	}
}
