package docs_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// promised are the packages whose Go API stays.
var promised = []string{"api", "client", "schemas"}

const notPromised = "Its Go API may change with every release: see docs/stability.md."

func TestEachPackageSaysWhetherItsAPIStays(t *testing.T) {
	text, _ := readGuide(t, "stability.md")
	for _, dir := range promised {
		if !strings.Contains(text, "`"+dir+"`") {
			t.Errorf("stability.md doesn't have the package %s", dir)
		}
	}
	for dir := range packages(t) {
		name, doc := documentation(t, dir)
		if name == "" || name == "main" || strings.Contains(dir, "internal/") {
			continue // nobody can import it
		}
		if says := strings.Contains(strings.Join(strings.Fields(doc), " "), notPromised); says == slices.Contains(promised, dir) {
			t.Errorf("the doc of package %s says that its API may change: %v", dir, says)
		}
	}
}

// documentation returns the name and the doc of a directory's package; "" if it has tests alone.
func documentation(t *testing.T, dir string) (name, doc string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		name = file.Name.Name
		doc += file.Doc.Text()
	}
	return name, doc
}

func TestTheLicenceIsThere(t *testing.T) {
	raw, err := os.ReadFile("../LICENSE")
	if err != nil || !strings.Contains(string(raw), "Apache License") || !strings.Contains(string(raw), "AOD authors") {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}
