package testcmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFailuresThatAGraderJudgesAlikeAreOne(t *testing.T) {
	t.Parallel()
	long := "grade: 0.2 of 0.7 by judge: " + strings.Repeat("a word ", 20)
	var all []*outcome
	for _, differences := range [][]string{
		{"grade: 0.5 of 0.7 by judge: it leaves out the hour: nine"},
		nil,
		{"grade: 0.5 of 0.7 by judge: no hour"},
		{"grade: 0.5 of 0.7 by judge: …"},
		{"grade: 0.4 of 0.7 by judge: no hour"},
		{"/found: want true, got false", "grade: 0.5 of 0.7 by judge: no hour"},
		{"/found: want true, got null", "grade: 0.5 of 0.7 by judge: no hour"},
		{"grade: 0.5 of 0.7 by other: no hour"},
		{long},
		{long + "more"},
	} {
		all = append(all, &outcome{differences: differences})
	}
	want := []failure{
		{[]string{"grade: 0.5 of 0.7 by judge: it leaves out the hour: nine …"}, []int{1, 3, 4}},
		{[]string{"grade: 0.2 of 0.7 by judge: " + strings.Repeat("a word ", 8) + "a …"}, []int{9, 10}},
		{[]string{"grade: 0.4 of 0.7 by judge: no hour"}, []int{5}},
		{[]string{"/found: want true, got false", "grade: 0.5 of 0.7 by judge: no hour"}, []int{6}},
		{[]string{"/found: want true, got null", "grade: 0.5 of 0.7 by judge: no hour"}, []int{7}},
		{[]string{"grade: 0.5 of 0.7 by other: no hour"}, []int{8}},
	}
	if diff := cmp.Diff(want, failuresOf(all)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]failure{{[]string{"grade: 1 by judge: only"}, []int{1}}}, failuresOf([]*outcome{{differences: []string{"grade: 1 by judge: only"}}})); diff != "" {
		t.Error(diff)
	}
}
