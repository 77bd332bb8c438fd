package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// pkg is a package's lines.
type pkg struct{ prod, test int }

// file is a file of product code, and its lines.
type file struct {
	name  string
	lines int
}

// function is a function or method with a body, and its size in lines.
type function struct {
	name  string
	lines int
}

// tally holds what was counted. All but packages is of product code only.
type tally struct {
	set        *token.FileSet
	packages   map[string]*pkg
	types      map[string]*typ // by directory and name
	files      []file
	wide       []string // lines that are too long
	functions  []function
	interfaces []int
	comments   int
	exported   int
	documented int
}

func (t *tally) functionSizes() []int {
	sizes := make([]int, len(t.functions))
	for i, f := range t.functions {
		sizes[i] = f.lines
	}
	return sizes
}

func newTally() *tally {
	return &tally{set: token.NewFileSet(), packages: map[string]*pkg{}, types: map[string]*typ{}}
}

func (t *tally) tree(tree fs.FS) error {
	return fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && leftOut(file):
			return fs.SkipDir
		case d.IsDir() || path.Ext(file) != ".go":
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		return t.file(file, text)
	})
}

// leftOut reports whether a directory holds neither product nor test code.
func leftOut(dir string) bool {
	base := path.Base(dir)
	return base == "testdata" || dir == "tools" || strings.HasPrefix(base, ".") && base != "."
}

func (t *tally) file(name string, text []byte) error {
	lines, p := bytes.Count(text, []byte("\n")), t.pkg(path.Dir(name))
	if isTest(name) {
		p.test += lines
		return nil
	}
	p.prod += lines
	t.files = append(t.files, file{name, lines})
	t.wideLines(name, text)
	parsed, err := parser.ParseFile(t.set, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	t.syntax(name, parsed)
	return nil
}

func (t *tally) pkg(dir string) *pkg {
	if t.packages[dir] == nil {
		t.packages[dir] = &pkg{}
	}
	return t.packages[dir]
}

// isTest reports whether a file is one of a test, or lies in or below a directory that is a library of tests.
func isTest(file string) bool {
	return strings.HasSuffix(file, "_test.go") || slices.ContainsFunc(strings.Split(path.Dir(file), "/"), isForTests)
}

// isForTests reports whether a directory's name is that of a library of tests.
func isForTests(dir string) bool {
	return strings.HasSuffix(dir, "test") || slices.Contains([]string{"testing", "testkit", "fuzzbound"}, dir)
}

func (t *tally) syntax(name string, file *ast.File) {
	for _, c := range file.Comments {
		t.comments += t.span(c)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			t.function(name, n)
			t.method(name, n)
		case *ast.TypeSpec:
			t.declare(name, n)
			if i, ok := n.Type.(*ast.InterfaceType); ok {
				t.interfaces = append(t.interfaces, i.Methods.NumFields())
			}
		}
		return true
	})
}

func (t *tally) function(name string, f *ast.FuncDecl) {
	if f.Name.IsExported() {
		t.exported++
		if f.Doc != nil {
			t.documented++
		}
	}
	if f.Body != nil {
		t.functions = append(t.functions, function{name + ":" + f.Name.Name, max(t.span(f.Body)-2, 0)})
	}
}

// span returns how many lines a node touches.
func (t *tally) span(n ast.Node) int {
	return t.set.Position(n.End()).Line - t.set.Position(n.Pos()).Line + 1
}
