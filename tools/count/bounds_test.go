package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// plain is a tree that keeps all bounds, none of whose files is small.
func plain() fstest.MapFS {
	tree := fstest.MapFS{}
	add(tree, "orchestrator/job.go", "type job struct { a, b int }\n")
	for i := range 20 {
		add(tree, fmt.Sprintf("a/plain%d.go", i), "// "+strings.Repeat("é", 117)+"\n")
	}
	return tree
}

// add adds a file of at least as many lines as a file is to have.
func add(tree fstest.MapFS, name, text string) {
	tree[name] = &fstest.MapFile{Data: []byte("package a\n" + strings.Repeat("\n", fewestFileLines) + text)}
}

func lined(n int) string { return strings.Repeat("\n", n) }

// methods returns some methods of a type, each of which has some lines.
func methods(of string, n, lines int) string {
	return strings.Repeat("func (x *"+of+") M() {"+lined(lines-1)+"}\n", n)
}

// breaches are changes of a plain tree, each of which is to lift the figure of its name above its bound.
var breaches = map[string]struct {
	breach   func(tree fstest.MapFS)
	offender string
}{
	"method lines of types in more than 5 files": {func(tree fstest.MapFS) {
		for i := range 8 {
			add(tree, fmt.Sprintf("a%d/t.go", i), "type T[K any] struct{}\n")
			for j := range 6 {
				add(tree, fmt.Sprintf("a%d/m%d.go", i, j), methods("T[K]", 4, 22))
			}
		}
	}, "a7.T 6 files, 24 methods, 528 lines"},
	"types with more than 40 methods": {func(tree fstest.MapFS) {
		for i := range 4 {
			name := fmt.Sprintf("t%d", i)
			add(tree, "a/"+name+".go", "type "+name+" int\n"+methods(name, 41, 2))
		}
	}, "a.t3 41 methods"},
	"types of more than 900 method lines": {func(tree fstest.MapFS) {
		add(tree, "a/t.go", "type t struct{}\n"+methods("t", 20, 25))
		add(tree, "a/f.go", strings.Repeat("func f(_ *t, _ int) {"+lined(24)+"}\n", 20))
	}, "a.t 1000 lines, 500 of them in functions"},
	"files of more than 600 lines": {func(tree fstest.MapFS) {
		add(tree, "a/long.go", lined(600))
	}, "a/long.go 641 lines"},
	"percent of files under 40 lines": {func(tree fstest.MapFS) {
		for i := range 3 {
			tree[fmt.Sprintf("a/small%d.go", i)] = &fstest.MapFile{Data: []byte("package a\n" + lined(38))}
		}
	}, "a/small0.go 39 lines"},
	"lines over 120 columns": {func(tree fstest.MapFS) {
		add(tree, "a/wide.go", "\t// "+strings.Repeat("é", 114)+"\n")
	}, "a/wide.go:42"},
	"product lines": {func(tree fstest.MapFS) {
		for i := range mostProduct/598 + 1 {
			add(tree, fmt.Sprintf("a/more%d.go", i), lined(555))
		}
	}, ""},
	"lines of the longest function": {func(tree fstest.MapFS) {
		add(tree, "a/f.go", "func f() {"+lined(68)+"}\n"+strings.Repeat("func g() {\n}\n", 120))
	}, "a/f.go:f 67 lines"},
	"lines of the 99th percentile of functions": {func(tree fstest.MapFS) {
		add(tree, "a/f.go", strings.Repeat("func f() {"+lined(34)+"}\n", 2))
	}, "a/f.go:f 33 lines"},
	"fields of a job": {func(tree fstest.MapFS) {
		add(tree, "orchestrator/job.go", "type job struct { more; *side; in in; p *other; s Shown; x struct { a, b int } }\n"+
			"type more struct { a, b, c, d, e, f, g in }\ntype side struct { *job; n int }\ntype in struct { a, b int }\n"+
			"type other struct { a, b, c int }\ntype Shown struct { a, b int }\n")
	}, "orchestrator.job 22 fields"},
}

func TestEachBoundHolds(t *testing.T) {
	t.Parallel()
	if text, err := checked(t, plain(), nil, nil); err != nil {
		t.Fatalf("a plain tree: %v\n%s", err, text)
	}
	for name, b := range breaches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := plain()
			b.breach(tree)
			text, err := checked(t, tree, nil, nil)
			wantAbove(t, err, text, name, b.offender)
		})
	}
}

func TestTheKernelAndTheRootHaveBounds(t *testing.T) {
	t.Parallel()
	imports := []string{"example/orchestrator", "example/orchestrator/feature", "example/orchestrator/pushes", "example/orchestrator/feature/pushes"}
	text, err := checked(t, plain(), nil, imports)
	wantAbove(t, err, text, "packages of features that the kernel imports", "example/orchestrator/feature/pushes")
	files := []string{"go.mod", "go.sum"}
	for i := range mostFolders {
		files = append(files, fmt.Sprintf("f%d/a", i), fmt.Sprintf("f%d/b/c", i))
	}
	if text, err := checked(t, plain(), files, nil); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	text, err = checked(t, plain(), append(files, "last/a"), nil)
	wantAbove(t, err, text, "folders of the root", "last")
	tree := plain()
	delete(tree, "orchestrator/job.go")
	text, err = checked(t, tree, nil, nil)
	wantAbove(t, err, text, "fields of a job", "orchestrator has no struct job")
}

// checked returns what becomes of a tree's figures, and what is printed of them, with single spaces.
func checked(t *testing.T, tree fstest.MapFS, tracked, imports []string) (string, error) {
	t.Helper()
	tally := newTally()
	if err := tally.tree(tree); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := check(&out, tally.figures(tracked, imports))
	return spaced(out.String()), err
}

// spaced makes each run of spaces in a line one.
func spaced(text string) string {
	rows := strings.Split(text, "\n")
	for i, row := range rows {
		rows[i] = strings.Join(strings.Fields(row), " ")
	}
	return strings.Join(rows, "\n")
}

// wantAbove holds that one figure is above its bound, and that this alone is named, with what puts it there.
func wantAbove(t *testing.T, err error, text, name, offender string) {
	t.Helper()
	if !errors.Is(err, errAbove) || !strings.Contains(err.Error(), name+": ") || strings.Contains(err.Error(), ";") {
		t.Errorf("error %v, not one of %s alone, with:\n%s", err, name, text)
	}
	_, after, named := strings.Cut(text, "\n\n"+name+": ")
	if !named || !strings.Contains(after+"\n", "\n"+offender+"\n") {
		t.Errorf("no %q below %q in:\n%s", offender, name, text)
	}
}

func TestATreeUnderVersionControl(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                    "module example\n\ngo 1.26\n",
		"orchestrator/job.go":       "package orchestrator\n\nimport _ \"example/orchestrator/push\"\n\ntype job struct{}\n",
		"orchestrator/push/push.go": "package push\n\nimport _ \"strings\"\n",
		"untracked/notes":           "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "go.mod", "orchestrator"}} {
		git := exec.CommandContext(t.Context(), "git", args...)
		git.Dir = root
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v, %s", args, err, out)
		}
	}
	var out strings.Builder
	err := count(t.Context(), &out, root)
	if !errors.Is(err, errAbove) {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{"packages of features that the kernel imports 1 0", "folders of the root 1 15"} {
		if !strings.Contains(spaced(out.String()), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}
