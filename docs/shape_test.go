package docs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sameShape reports how the JSON that a guide shows differs from what was printed, in
// names and types; the values may be others.
func sameShape(shown, printed string) error {
	var want, got any
	if err := json.Unmarshal([]byte(shown), &want); err != nil {
		return fmt.Errorf("the guide shows something else than JSON: %w", err)
	}
	if err := json.Unmarshal([]byte(printed), &got); err != nil {
		return fmt.Errorf("what was printed is not JSON: %w", err)
	}
	return diffShape("", want, got)
}

func diffShape(at string, want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok || !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))) {
			return fmt.Errorf("%s/: the guide shows %q, there is %v", at, slices.Sorted(maps.Keys(want)), got)
		}
		for name := range want {
			if err := diffShape(at+"/"+name, want[name], got[name]); err != nil {
				return err
			}
		}
	case []any:
		got, ok := got.([]any)
		if !ok || (len(want) == 0) != (len(got) == 0) {
			return fmt.Errorf("%s: the guide shows a list of %d, there is %v", at, len(want), got)
		}
		if len(want) > 0 {
			return diffShape(at+"/0", want[0], got[0])
		}
	default:
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) || (isWord(want) && want != got) {
			return fmt.Errorf("%s: the guide shows %v, there is %v", at, want, got)
		}
	}
	return nil
}

// isWord tells what is the same each time from ids, times, digests and figures.
func isWord(v any) bool {
	text, ok := v.(string)
	return ok && plain(text) == text && !strings.Contains(text, "/")
}

var volatile = []*regexp.Regexp{
	regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`),
	regexp.MustCompile(`\b[0-9a-f]{16,64}\b`),
	regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[0-9:.]+Z`),
	regexp.MustCompile(`\b([0-9]+(\.[0-9]+)?(e[+-][0-9]+)?(µs|ms|s|m|h)?)+\b`),
}

var gaps = regexp.MustCompile(` +`)

// plain takes out of a text what differs each time.
func plain(text string) string {
	for _, pattern := range volatile {
		text = pattern.ReplaceAllString(text, "#")
	}
	return strings.TrimSpace(gaps.ReplaceAllString(strings.ReplaceAll(text, "\r", ""), " "))
}

// sameLines reports a line of the guide that was not printed, but for what differs each
// time. "..." stands for anything.
func sameLines(shown, printed string) error {
	lines := strings.Split(printed, "\n")
	for i := range lines {
		lines[i] = plain(lines[i])
	}
	for line := range strings.SplitSeq(shown, "\n") {
		if line != "..." && !slices.Contains(lines, plain(line)) {
			return fmt.Errorf("not printed: %s", line)
		}
	}
	return nil
}

func TestWhatDiffersIsSeen(t *testing.T) {
	record := `{"id": "01a1fec5-c4b2-7f39-abce-c98bbd79863c", "state": "running", "n": 3, "files": [{"name": "a"}], "error": null}`
	cases := []struct {
		name, printed string
		same          bool
	}{
		{"another id and number", strings.NewReplacer("c4b2", "0000", "3,", "47,").Replace(record), true},
		{"another state", strings.Replace(record, "running", "failed", 1), false},
		{"a field more", strings.Replace(record, "{", `{"more": 1, `, 1), false},
		{"a field less", strings.Replace(record, `"n": 3, `, "", 1), false},
		{"a field less further down", strings.Replace(record, `"name": "a"`, "", 1), false},
		{"another type", strings.Replace(record, "3", `"3"`, 1), false},
		{"null no more", strings.Replace(record, "null", `{}`, 1), false},
		{"an empty list", strings.Replace(record, `[{"name": "a"}]`, "[]", 1), false},
		{"no JSON", "oh", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := sameShape(record, c.printed); (err == nil) != c.same {
				t.Error(err)
			}
		})
	}
	if err := sameLines("id: 1\n...\nage 3s\n", "age  17ms\nid: 22\n"); err != nil {
		t.Error(err)
	}
	if sameLines("a line", "another line") == nil {
		t.Error("another line is taken")
	}
}
