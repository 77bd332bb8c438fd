package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
)

const filesContract = `{
  "input": {"type": "object", "properties": {
    "one": {"type": "string", "format": "file_path"},
    "many": {"type": "list", "items": {"type": "string", "format": "file_path"}},
    "deep": {"type": "dict", "properties": {"one": {"type": "string", "format": "file_path"}}},
    "text": {"type": "string"},
    "n": {"type": "int", "maximum": 3}
  }},
  "output": {"type": "object"}
}`

func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "x/a.txt", "y/a.txt", "bad\nname"} {
		write(t, filepath.Join(dir, name), "content")
	}
	agreed, findings := contract.Parse([]byte(filesContract))
	if agreed == nil {
		t.Fatal(findings)
	}
	cases := []struct {
		name, input string
		files       []string // field=path
		want        string   // the payload, or a part of what is said
	}{
		{"a file sets its field to its own name", `{}`, []string{"one=a.txt"}, `{"one":"a.txt"}`},
		{"a nested field", `{}`, []string{"deep.one=a.txt"}, `{"deep":{"one":"a.txt"}}`},
		{"a list takes them all, and a second name gets its own directory", `{}`, []string{"many=a.txt", "many=x/a.txt", "many=y/a.txt"}, `{"many":["a.txt","2/a.txt","3/a.txt"]}`},
		{"two files for a field that takes one", `{}`, []string{"one=a.txt", "one=x/a.txt"}, `two files were given for "one", which takes one`},
		{"a file for a field that is none", `{}`, []string{"text=a.txt"}, `which the contract doesn't declare as one`},
		{"a file that isn't there", `{}`, []string{"one=nothing"}, `cannot read the file`},
		{"a directory", `{}`, []string{"one=x"}, `not a regular file`},
		{"a name that the sandbox can't have", `{}`, []string{"one=bad\nname"}, `can't keep its name`},
		{"a name without its file", `{"one":"a.txt"}`, nil, `give it with --file one=PATH`},
		{"a name in a list without its file", `{"many":["a.txt"]}`, nil, `give it with --file many=PATH`},
		{"a name that climbs", `{"one":"../a.txt"}`, nil, `..`},
		{"`file` is one, whatever the contract says", `{}`, []string{"file=a.txt"}, `{"file":"a.txt"}`},
		{"`files` are, too", `{}`, []string{"files=a.txt", "files=x/a.txt"}, `{"files":["a.txt","2/a.txt"]}`},
		{"`files` stays the text that it was", `{"files":"/host/a.txt"}`, []string{"files=a.txt"}, `{"files":"a.txt"}`},
		{"`file` stays the list that it was", `{"file":["/host/a.txt"]}`, []string{"file=a.txt"}, `{"file":["a.txt"]}`},
		{"`file` without one is a text", `{"file":"a.txt","files":["../x",7]}`, nil, `{"file":"a.txt","files":["../x",7]}`},
		{"a file for no field is there all the same", `{}`, []string{"=a.txt", "=x/a.txt"}, `{}`},
		{"every violation at once", `{"n":4,"text":1}`, []string{"text=a.txt"}, `/n: `},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			input, err := contract.Decode([]byte(c.input), 0)
			if err != nil {
				t.Fatal(err)
			}
			req := Request{Unit: &unit.Unit{Name: "x", Contract: agreed}, Input: input}
			for _, f := range c.files {
				field, path, _ := strings.Cut(f, "=")
				req.Files = append(req.Files, InputFile{Field: field, Path: filepath.Join(dir, path)})
			}
			ready, err := req.Prepare(t.Context(), anything{})
			if err == nil {
				if got := string(ready.Payload.JSON()); got != c.want {
					t.Errorf("payload %s, want %s", got, c.want)
				}
				return
			}
			if !fault.Is(err, fault.Input) {
				t.Errorf("kind %v", fault.KindOf(err))
			}
			var told strings.Builder
			told.WriteString(err.Error() + "\n")
			for _, f := range fault.Public(err).Findings {
				told.WriteString(f.String() + "\n")
			}
			if !strings.Contains(told.String(), c.want) {
				t.Errorf("says %s, want %s", told.String(), c.want)
			}
		})
	}
}

// anything is a kind that takes every request.
type anything struct{ Kind }

func (anything) Check(Request, Input) error { return nil }

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
