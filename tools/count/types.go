package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"unicode/utf8"
)

// typ is a type and what is done with it: its methods, and the functions of its package whose first parameter it is.
type typ struct {
	dir, name string
	declared  ast.Expr
	files     map[string]bool // of its methods
	methods   int
	lines     int // of its methods
	functions int // lines of the functions
}

func (t *typ) String() string { return t.dir + "." + t.name }

func (t *tally) declare(file string, spec *ast.TypeSpec) {
	t.typ(file, spec.Name.Name).declared = spec.Type
}

func (t *tally) typ(file, name string) *typ {
	key := path.Dir(file) + "." + name
	if t.types[key] == nil {
		t.types[key] = &typ{dir: path.Dir(file), name: name, files: map[string]bool{}}
	}
	return t.types[key]
}

// method counts a function for the type of its receiver, or else of its first parameter.
func (t *tally) method(file string, f *ast.FuncDecl) {
	switch {
	case f.Recv != nil:
		of := t.typ(file, baseName(f.Recv.List[0].Type))
		of.files[file] = true
		of.methods++
		of.lines += t.span(f)
	case f.Type.Params.NumFields() > 0:
		if name := baseName(f.Type.Params.List[0].Type); name != "" {
			t.typ(file, name).functions += t.span(f)
		}
	}
}

// baseName returns the name of a type of the same package, of a pointer to it or of an instance of it; else "".
func baseName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.ParenExpr:
		return baseName(e.X)
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	}
	return ""
}

// declaredTypes returns the types that are declared in the tree, those with most lines of methods first.
func (t *tally) declaredTypes() []*typ {
	all := slices.DeleteFunc(slices.Collect(maps.Values(t.types)), func(of *typ) bool { return of.declared == nil })
	slices.SortFunc(all, func(a, b *typ) int {
		return cmp.Or(cmp.Compare(b.lines, a.lines), cmp.Compare(a.String(), b.String()))
	})
	return all
}

// fields counts the fields of a struct, and in place of one that holds an unexported struct of its package the
// fields of that.
func (t *tally) fields(of *typ, seen map[*typ]bool) int {
	declared, ok := of.declared.(*ast.StructType)
	if !ok || seen[of] {
		return 1
	}
	seen[of] = true
	defer delete(seen, of)
	return t.fieldsOf(of, declared, seen)
}

func (t *tally) fieldsOf(of *typ, declared *ast.StructType, seen map[*typ]bool) int {
	n := 0
	for _, field := range declared.Fields.List {
		n += max(len(field.Names), 1) * t.held(of, field, seen)
	}
	return n
}

// held counts what one field holds.
func (t *tally) held(of *typ, field *ast.Field, seen map[*typ]bool) int {
	kind := field.Type
	if pointer, ok := kind.(*ast.StarExpr); ok && field.Names == nil {
		kind = pointer.X
	}
	switch kind := kind.(type) {
	case *ast.StructType:
		return t.fieldsOf(of, kind, seen)
	case *ast.Ident:
		inner := t.types[of.dir+"."+kind.Name]
		if inner != nil && !kind.IsExported() {
			return t.fields(inner, seen)
		}
	}
	return 1
}

// wideLines notes the lines that have too many columns. A tab has four.
func (t *tally) wideLines(name string, text []byte) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		columns := utf8.RuneCount(bytes.TrimRight(line, "\n")) + 3*bytes.Count(line, []byte("\t"))
		if columns > mostColumns {
			t.wide = append(t.wide, fmt.Sprintf("%s:%d", name, n))
		}
	}
}
