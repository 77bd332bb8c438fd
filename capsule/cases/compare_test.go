package cases

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
)

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	wanted, given := filepath.Join(dir, "wanted"), filepath.Join(dir, "given")
	for path, text := range map[string]string{wanted: "a\nb\n", given: "a\nc\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, pointer := 1, "/report/file"
	file := api.File{Pointer: &pointer, SHA256: "ff", SizeBytes: 4, Path: given}
	failed := api.Record{Outcome: api.CapsuleError, ExitCode: &one, Error: &api.RunError{Type: "ValueError", Message: "no rows"}}
	done := api.Record{Outcome: api.Success, Output: []byte(`{"n":1}`), Files: []api.File{file}}
	for _, c := range []struct {
		name string
		want capsule.Expect
		got  api.Record
		says []string
	}{
		{"success is expected where nothing is", capsule.Expect{}, failed, []string{"outcome: want success, got capsule_error", "no rows"}},
		{"success", capsule.Expect{Output: []byte(`{"n":1.0}`)}, done, nil},
		{"another output", capsule.Expect{Output: []byte(`{"n":2}`)}, done, []string{"/n: want 2, got 1"}},
		{"the error", capsule.Expect{Error: &capsule.ExpectError{Type: "ValueError", Message: "rows"}, ExitCode: &one}, failed, nil},
		{"another error", capsule.Expect{Error: &capsule.ExpectError{Type: "KeyError", Message: "x"}}, failed, []string{
			`error type: want "KeyError", got "ValueError"`, `error message: want one with "x" in it, got "no rows"`,
		}},
		{"no error", capsule.Expect{Error: &capsule.ExpectError{}}, done, []string{"error: want one, got success"}},
		{"an exit code of what never started", capsule.Expect{ExitCode: &one}, done, []string{"exit code: want 1, got none: it never started"}},
		{"a file", capsule.Expect{Files: map[string]capsule.ExpectFile{"report.file": {SHA256: "ff", MinBytes: 4}}}, done, nil},
		{"no file", capsule.Expect{Files: map[string]capsule.ExpectFile{"x": {}}}, done, []string{"file x: want one, got none"}},
		{"another file", capsule.Expect{Files: map[string]capsule.ExpectFile{"report.file": {SHA256: "ee", MinBytes: 5, SameAs: wanted}}}, done, []string{
			"file report.file: want sha256 ee, got ff", "file report.file: want at least 5 bytes, got 4",
			"file report.file: differs from " + wanted + " at line 2 (4 bytes, want 4)",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.says, Compare(c.want, c.got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
