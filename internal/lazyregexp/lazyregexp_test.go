package lazyregexp

import "testing"

func TestAPatternMatchesAsItsExpressionSays(t *testing.T) {
	name := New(`^[a-z]+$`)
	if !name().MatchString("abc") || name().MatchString("a1") {
		t.Error("it matches something else")
	}
	if first, second := name(), name(); first != second {
		t.Error("it is compiled again")
	}
}

func TestAWrongPatternEndsAProgramOfTestsAtOnce(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the expression was taken")
		}
	}()
	New(`(`)
}

func TestWhatAProgramOfTestsIs(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"/tmp/aod.test", "-test.run=X"}, true},
		{[]string{`C:\aod.test.exe`}, true},
		{[]string{"/usr/local/bin/aod", "test"}, false},
		{[]string{"aod"}, false},
		{nil, false},
	} {
		if got := isTest(c.args); got != c.want {
			t.Errorf("isTest(%q) is %t", c.args, got)
		}
	}
}
