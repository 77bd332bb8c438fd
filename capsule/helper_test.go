package capsule

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

// good is the smallest capsule that breaks no rule.
var good = map[string]string{
	"Dockerfile":  "FROM aod/base\nCOPY . /capsule\n",
	"agent.yaml":  "name: good\n",
	"tools.yaml":  "[]\n",
	"schema.json": `{"input": {"type": "object"}, "output": {"type": "object"}}`,
	"run.py":      "import aod\n\naod.run()\n",
	"src/main.py": "def execute(payload: dict) -> dict:\n    return {}\n",
}

// missing as a file's content leaves the file out.
const missing = "\x00missing"

// newCapsule writes the good capsule with some of its files changed.
func newCapsule(t testing.TB, changes map[string]string) string {
	t.Helper()
	files := maps.Clone(good)
	maps.Copy(files, changes)
	maps.DeleteFunc(files, func(_, text string) bool { return text == missing })
	return newDirectory(t, files)
}

// newDirectory writes files; a name that ends in "/" is an empty directory.
func newDirectory(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if name[len(name)-1] == '/' {
			must(t, os.MkdirAll(path, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// loaded loads a capsule that has to be in order.
func loaded(t testing.TB, dir string) *Capsule {
	t.Helper()
	c, err := Load(dir)
	if err != nil {
		t.Fatalf("Load: %v\n%s", err, told(err))
	}
	return c
}

// told writes the findings of an error, one a line.
func told(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return ""
	}
	text := ""
	for _, finding := range f.Findings {
		text += finding.String() + "\n"
	}
	return text
}
