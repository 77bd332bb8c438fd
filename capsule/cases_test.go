package capsule

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func TestCases(t *testing.T) {
	dir := newCapsule(t, map[string]string{
		"tests/b.json": `{"expect": {"error": {"type": "ValueError", "message": "no"}, "exit_code": 0}}`,
		"tests/a.json": `{
			"$schema": "x", "description": "first", "input": {"n": 1.50}, "files": {"doc": "data/x.txt"}, "timeout": "5s",
			"expect": {"output": {"m": 2}, "match": "subset", "outcome": "success",
				"files": {"out": {"sha256": "` + strings.Repeat("a", 64) + `", "min_bytes": 3, "same_as": "data/x.txt"}}}}`,
		"tests/data/x.txt":   "x",
		"tests/data/no.json": "not a case",
		"tests/README":       "not a case",
	})
	got, err := loaded(t, dir).Cases()
	if err != nil {
		t.Fatalf("Cases: %v\n%s", err, told(err))
	}
	data, zero := filepath.Join(dir, "tests/data/x.txt"), 0
	want := []Case{
		{
			Name: "a", File: "tests/a.json", Description: "first", Input: json.RawMessage(`{"n": 1.50}`),
			Files: map[string]string{"doc": data}, Timeout: 5 * time.Second,
			Expect: Expect{
				Output: json.RawMessage(`{"m": 2}`), Subset: true, Outcome: "success",
				Files: map[string]ExpectFile{"out": {SHA256: strings.Repeat("a", 64), MinBytes: 3, SameAs: data}},
			},
		},
		{
			Name: "b", File: "tests/b.json", Input: json.RawMessage("{}"), Files: map[string]string{},
			Expect: Expect{Files: map[string]ExpectFile{}, Error: &ExpectError{Type: "ValueError", Message: "no"}, ExitCode: &zero},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNoCases(t *testing.T) {
	if got, err := loaded(t, newCapsule(t, nil)).Cases(); err != nil || len(got) != 0 {
		t.Errorf("Cases = %v, %v", got, err)
	}
}

func TestBadCases(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"a case that isn't JSON":         {`{"expect": `, "tests/a.json"},
		"a case that is a list":          {`[]`, "tests/a.json"},
		"a case without expect":          {`{}`, "tests/a.json"},
		"a misspelt key":                 {`{"expcet": {}, "expect": {}}`, `tests/a.json#/expcet: the key "expcet" is not known (did you mean expect?)`},
		"output and error together":      {`{"expect": {"output": {}, "error": {"type": "x"}}}`, "tests/a.json#/expect: output and error exclude each other"},
		"a timeout without a unit":       {`{"timeout": 3, "expect": {}}`, `tests/a.json#/timeout: "3" has no unit`},
		"a match that there isn't":       {`{"expect": {"match": "some"}}`, "tests/a.json#/expect/match: "},
		"an outcome that there isn't":    {`{"expect": {"outcome": "ok"}}`, "tests/a.json#/expect/outcome: "},
		"a digest that is none":          {`{"expect": {"files": {"x": {"sha256": "AB"}}}}`, "tests/a.json#/expect/files/x/sha256: "},
		"a file that isn't there":        {`{"files": {"x": "nope"}, "expect": {}}`, `tests/a.json#/files/x: there is no file "tests/nope"`},
		"a file outside":                 {`{"files": {"x": "../../agent.yaml"}, "expect": {}}`, `tests/a.json#/files/x: the file "../../agent.yaml" lies outside the capsule`},
		"an absolute file":               {`{"files": {"x": "/etc/passwd"}, "expect": {}}`, `tests/a.json#/files/x: the file "/etc/passwd" lies outside the capsule`},
		"a link as a file":               {`{"files": {"x": "link"}, "expect": {}}`, `tests/a.json#/files/x: "tests/link": it is a symbolic link`},
		"a pipe as a file":               {`{"files": {"x": "pipe"}, "expect": {}}`, `tests/a.json#/files/x: "tests/pipe": it is a named pipe`},
		"a reference that isn't there":   {`{"expect": {"files": {"x": {"same_as": "nope"}}}}`, `tests/a.json#/expect/files/x/same_as: there is no file`},
		"a key that stands twice":        {`{"expect": {}, "expect": {}}`, "tests/a.json"},
		"a file that is asked nothing":   {`{"expect": {"files": {"x": {}}}}`, "tests/a.json#/expect/files/x: "},
		"an exit code that can't happen": {`{"expect": {"exit_code": 256}}`, "tests/a.json#/expect/exit_code: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := newCapsule(t, map[string]string{"tests/a.json": c.text})
			must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "tests/link")))
			must(t, unix.Mkfifo(filepath.Join(dir, "tests/pipe"), 0o644))
			_, err := loaded(t, dir).Cases()
			if !fault.Is(err, fault.Capsule) || !strings.HasPrefix(told(err), c.want) {
				t.Errorf("Cases: %v\ngot  %swant %s", err, told(err), c.want)
			}
			if n := strings.Count(told(err), "\n"); n != 1 {
				t.Errorf("%d findings:\n%s", n, told(err))
			}
		})
	}
	t.Run("the problems of all cases at once", func(t *testing.T) {
		_, err := loaded(t, newCapsule(t, map[string]string{"tests/a.json": "{}", "tests/b.json": "{}", "tests/c.json": "3"})).Cases()
		if n := strings.Count(told(err), "\n"); n != 3 {
			t.Errorf("%d findings:\n%s", n, told(err))
		}
	})
	t.Run("a case that is a link", func(t *testing.T) {
		dir := newCapsule(t, map[string]string{"tests/": ""})
		must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "tests/a.json")))
		if _, err := loaded(t, dir).Cases(); !strings.HasPrefix(told(err), "tests/a.json: it is a symbolic link") {
			t.Errorf("Cases: %v\n%s", err, told(err))
		}
	})
	t.Run("tests that is a link", func(t *testing.T) {
		dir := newCapsule(t, nil)
		must(t, os.Symlink("/etc", filepath.Join(dir, "tests")))
		if _, err := loaded(t, dir).Cases(); !fault.Is(err, fault.Capsule) {
			t.Errorf("Cases: %v", err)
		}
	})
}

func FuzzParseCase(f *testing.F) {
	f.Add(`{"input": {}, "files": {"a": "b"}, "timeout": "3s", "expect": {"output": {}, "files": {"x": {"min_bytes": 1}}}}`)
	f.Add(`{"expect": {"exit_code": 1e3, "error": null}}`)
	fuzzbound.Run(f, func(t *testing.T, text string) {
		_, findings := parseCase([]byte(text))
		for _, finding := range findings {
			if finding.Message == "" {
				t.Errorf("%+v says nothing", finding)
			}
		}
		if len(findings) == 0 && !json.Valid([]byte(text)) {
			t.Error("took what isn't JSON")
		}
	})
}
