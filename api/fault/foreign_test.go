package fault

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithoutTakesOutWhatCameOutOfAPayload(t *testing.T) {
	message, foreign := Foreignf("%s has no field %s", "a unit", Foreign(Quote("Tweety")))
	if message != `a unit has no field "Tweety"` || foreign != `"Tweety"` {
		t.Fatalf("%s, foreign %s", message, foreign)
	}
	e := New(Input, "no %s in %q, but %s", Foreign(Quote("Tweety")), "u", Foreign(Quote("known"))).WithHint("remove %s", Foreign(Quote("other"))).
		WithFindings([]Finding{{Pointer: "/Tweety", Message: message, Hint: `not "Tweety"`, Foreign: foreign}, {Message: `"Tweety"`}})
	told := e.Without(func(text string) bool { return text == `"known"` })
	if told.Msg != `no "*" in "u", but "known"` || told.Hint != `remove "*"` {
		t.Errorf("%s (%s)", told.Msg, told.Hint)
	}
	want := []Finding{{Pointer: "/Tweety", Message: `a unit has no field "*"`, Hint: `not "*"`}, {Message: `"Tweety"`}}
	if diff := cmp.Diff(want, told.Findings); diff != "" {
		t.Error(diff)
	}
	if e.Findings[0].Message != message || e.Msg != `no "Tweety" in "u", but "known"` {
		t.Error("the error itself was changed")
	}
}
