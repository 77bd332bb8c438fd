package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod":        "module example\n\ngo 1.26\n",
		"a.go":          "package a\n",
		"a_windows.go":  "package a\n\nimport \"unsafe\"\n",
		"b/b.go":        "package b\n",
		"b/b_test.go":   "package b\n\nvar x = missing\n",
		"c/c_darwin.go": "package c\n\nvar x int = \"text\"\n",
		"d/d.go":        "package d\n\nimport _ \"example/c\"\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		tests    bool
		system   string
		patterns []string
		ok       bool
	}{
		"nothing is wrong":             {false, "linux/amd64", []string{"."}, true},
		"an import that isn't used":    {false, "windows/amd64", []string{"."}, false},
		"tests are left out":           {false, "linux/amd64", []string{"./b"}, true},
		"tests are asked for":          {true, "linux/amd64", []string{"./b"}, false},
		"another type":                 {false, "darwin/arm64", []string{"./c"}, false},
		"what is imported":             {false, "darwin/arm64", []string{"./d"}, false},
		"a system that doesn't exist":  {false, "linux/none", []string{"."}, false},
		"a package that doesn't exist": {false, "linux/amd64", []string{"./e"}, false},
		"no pattern":                   {false, "linux/amd64", nil, false},
		"no architecture":              {false, "linux", []string{"."}, false},
		"files of other systems":       {true, "linux/arm64", []string{"."}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := check(c.tests, c.system, c.patterns); (err == nil) != c.ok {
				t.Error(err)
			}
		})
	}
}
