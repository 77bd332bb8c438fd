package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsFoundOfAUnitsSource(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string // beside the unit's directory, u
		want  Source
	}{
		{"nothing", nil, Source{}},
		{"a README without an example", map[string]string{"u/README.md": "# u\n"}, Source{}},
		{"a README with one", map[string]string{"u/README.md": "```\nu < x\n```\n"}, Source{Readme: true}},
		{"a licence", map[string]string{"u/LICENSE-MIT": "text"}, Source{License: true}},
		{"a licence of another spelling", map[string]string{"u/licence.txt": "text"}, Source{License: true}},
		{"an empty licence", map[string]string{"u/LICENSE": " \n"}, Source{}},
		{"a licence of the repository", map[string]string{"LICENSE": "text", ".git/x": ""}, Source{License: true}},
		{"a licence of nobody's", map[string]string{"LICENSE": "text"}, Source{}},
		{"a licence above the repository", map[string]string{"LICENSE": "text", "u/.git/x": ""}, Source{}},
		{"tests in Go", map[string]string{"u/main_test.go": ""}, Source{UnitTests: true}},
		{"tests in Python", map[string]string{"u/tests/test_main.py": ""}, Source{UnitTests: true}},
		{"tests in JavaScript", map[string]string{"u/main.test.js": ""}, Source{UnitTests: true}},
		{"tests in Rust", map[string]string{"u/src/lib.rs": "#[cfg(test)]\nmod tests {}\n"}, Source{UnitTests: true}},
		{"no tests in Rust", map[string]string{"u/src/lib.rs": "fn main() {}\n"}, Source{}},
		{"tests of others", map[string]string{"u/node_modules/x/x.test.js": ""}, Source{}},
		{"words that only begin so", map[string]string{"u/testimony.py": "", "u/latest.go": ""}, Source{}},
		{"samples", map[string]string{"u/testdata/page.png": ""}, Source{IntegrationTests: true}},
		{"a case of AOD's", map[string]string{"u/tests/first.json": "{}"}, Source{IntegrationTests: true}},
		{"a sample beside the program", map[string]string{"u/sample.pdf": ""}, Source{IntegrationTests: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
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
			if diff := cmp.Diff(&c.want, SourceOf(dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func merge(files map[string]string, name string) map[string]string {
	all := map[string]string{name: ""}
	for name, text := range files {
		all[name] = text
	}
	return all
}
