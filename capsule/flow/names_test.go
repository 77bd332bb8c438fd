package flow

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilesGetNamesOfTheirOwn(t *testing.T) {
	a, b, c := File{"x/a.txt", 1, "1"}, File{"a.txt", 2, "2"}, File{"x/a.txt", 1, "3"}
	value := map[string]any{"list": []any{a, b, a}, "z": map[string]any{"f": c}, "n": int64(1)}
	for whole, want := range map[bool]map[string]any{
		false: {"list": []any{"a.txt", "2/a.txt", "a.txt"}, "z": map[string]any{"f": "3/a.txt"}, "n": int64(1)},
		true:  {"list": []any{"x/a.txt", "a.txt", "x/a.txt"}, "z": map[string]any{"f": "2/x/a.txt"}, "n": int64(1)},
	} {
		names := Names{Whole: whole}
		got, err := names.Plain(value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]File{a, b, c}, names.Files()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestANameThatCantBeMadeClean(t *testing.T) {
	for _, name := range []string{"", "..", "a/..", "/etc/passwd\x00", "a\x1bb"} {
		names := Names{Whole: true}
		if _, err := names.Plain(map[string]any{"f": File{Name: name}}); err == nil {
			t.Errorf("%q has the name %q", name, names.Of(File{Name: name}))
		}
	}
}
