package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/capsule"
)

func TestWhatIsFoundOfAUnitsSource(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string // beside the unit's directory, u
		want  au.Source
	}{
		{"nothing", nil, au.Source{}},
		{"a README without an example", map[string]string{"u/README.md": "# u\n"}, au.Source{}},
		{"a README with one", map[string]string{"u/README.md": "```\nu < x\n```\n"}, au.Source{Readme: true}},
		{"a licence", map[string]string{"u/LICENSE-MIT": "text"}, au.Source{License: true}},
		{"a licence of another spelling", map[string]string{"u/licence.txt": "text"}, au.Source{License: true}},
		{"an empty licence", map[string]string{"u/LICENSE": " \n"}, au.Source{}},
		{"a licence of the repository", map[string]string{"LICENSE": "text", ".git/x": ""}, au.Source{License: true}},
		{"a licence of nobody's", map[string]string{"LICENSE": "text"}, au.Source{}},
		{"a licence above the repository", map[string]string{"LICENSE": "text", "u/.git/x": ""}, au.Source{}},
		{"tests in Go", map[string]string{"u/main_test.go": ""}, au.Source{UnitTests: true}},
		{"tests in Python", map[string]string{"u/tests/test_main.py": ""}, au.Source{UnitTests: true}},
		{"tests in JavaScript", map[string]string{"u/main.test.js": ""}, au.Source{UnitTests: true}},
		{"tests in Rust", map[string]string{"u/src/lib.rs": "#[cfg(test)]\nmod tests {}\n"}, au.Source{UnitTests: true}},
		{"no tests in Rust", map[string]string{"u/src/lib.rs": "fn main() {}\n"}, au.Source{}},
		{"tests of others", map[string]string{"u/node_modules/x/x.test.js": ""}, au.Source{}},
		{"words that only begin so", map[string]string{"u/testimony.py": "", "u/latest.go": ""}, au.Source{}},
		{"samples", map[string]string{"u/testdata/page.png": ""}, au.Source{IntegrationTests: true}},
		{"a case of AOD's", map[string]string{"u/tests/first.json": "{}"}, au.Source{IntegrationTests: true}},
		{"a sample beside the program", map[string]string{"u/sample.pdf": ""}, au.Source{IntegrationTests: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, data := alone(t)
			dir := filepath.Join(t.TempDir(), "u")
			c.files = merge(c.files, "u/Dockerfile")
			for name, text := range c.files {
				path := filepath.Join(filepath.Dir(dir), name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a := &app{data: data}
			if diff := cmp.Diff(&c.want, a.sourceOf(&capsule.Capsule{Dir: dir})); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a program alone has none", func(t *testing.T) {
		_, data := alone(t)
		a := &app{data: data}
		if got := a.sourceOf(&capsule.Capsule{Dir: filepath.Join(data, "au", "0123")}); got != nil {
			t.Errorf("%+v", got)
		}
	})
}

func merge(files map[string]string, name string) map[string]string {
	all := map[string]string{name: ""}
	for name, text := range files {
		all[name] = text
	}
	return all
}
