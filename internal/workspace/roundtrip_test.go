package workspace

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// project is one with all that a patch has a form for.
var project = map[string]string{
	"main.go":             "package main\n\nfunc main() {\n\tprintln(1)\n}\n",
	"long.txt":            strings.Repeat("line\n", 30) + "old\n" + strings.Repeat("line\n", 30) + "no newline at the end",
	"gone.txt":            "it goes\n",
	"deep/er/gone":        "it goes, and its directories\n",
	"run.sh":              "#!/bin/sh\n",
	"tool*":               "#!/bin/sh\n",
	"image.bin":           random(100),
	"gone.bin":            random(10),
	"empty":               "",
	"link":                "-> main.go",
	"turns":               "a file\n",
	"becomes":             "a file\n",
	"turns-back":          "-> main.go",
	"dir/file":            "in a directory\n",
	"a\nb":                "newline\n",
	"-rf":                 "dash\n",
	"with space":          "space\n",
	"tab\tquote\"back\\":  "odd\n",
	"größe/straße":        "umlaut\n",
	"untouched":           "as it was\n",
	"crlf.txt":            "a\r\nb\r\n",
	"latin1.txt":          "gr\xf6\xdfe\n",
	"sub/dir/with/depth*": "x\n",
}

// edit is what an agent makes of the project.
func edit(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"gone.txt", "deep", "gone.bin", "becomes", "dir", "turns-back"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"main.go":            "package main\n\nfunc main() {\n\tprintln(2)\n}",
		"long.txt":           "first\n" + strings.Repeat("line\n", 30) + "new\n" + strings.Repeat("line\n", 30) + "no newline at the very end",
		"run.sh*":            "#!/bin/sh\n",
		"tool":               "#!/bin/sh\necho\n",
		"image.bin":          random(120),
		"new.bin":            random(7),
		"empty":              "no more\n",
		"new-empty":          "",
		"link":               "-> long.txt",
		"turns":              "-> main.go",
		"turns-back":         "no link\n",
		"becomes/dir/file":   "deeper\n",
		"dir":                "a file now\n",
		"a\nb":               "changed\n",
		"new\nname":          "new\n",
		"-rf":                "changed\n",
		"with space":         "changed\n",
		"new with space":     "new\n",
		"tab\tquote\"back\\": "changed\n",
		"größe/straße":       "changed\n",
		"crlf.txt":           "a\r\nc\r\n",
		"latin1.txt":         "gr\xf6\xdfer\n",
		"a b/c*":             "new program\n",
	} {
		put(t, dir, name, content)
	}
}

func TestChangesBringOneTreeToTheOther(t *testing.T) {
	dir := tree(t, project)
	base := mustStore(t, dir, Options{})
	if diff := cmp.Diff(project, contents(t, base.Dir)); diff != "" {
		t.Fatal("the base differs", diff)
	}
	work := copyOf(t, base)
	edit(t, work)
	want := contents(t, work)
	found, dest := compared(t, base, work, CompareOptions{})
	if len(found.Warnings) > 0 {
		t.Error(found.Warnings)
	}
	ops := map[string]int{}
	for _, c := range found.Changes {
		ops[c.Op]++
	}
	if want := map[string]int{api.OpAdd: 7, api.OpModify: 16, api.OpDelete: 5}; !maps.Equal(ops, want) {
		t.Errorf("the changes are %v, want %v", ops, want)
	}

	t.Run("a file's patch", func(t *testing.T) {
		patch, err := os.Open(filepath.Join(dest, PatchName))
		if err != nil {
			t.Fatal(err)
		}
		defer patch.Close()
		var parts, whole strings.Builder
		for _, c := range found.Changes {
			_, _ = patch.Seek(0, io.SeekStart)
			part, err := PatchOf(patch, c.Path)
			if err != nil || part == nil {
				t.Fatalf("%q: %v", c.Path, err)
			}
			_, _ = io.Copy(&parts, part)
		}
		_, _ = patch.Seek(0, io.SeekStart)
		_, _ = io.Copy(&whole, patch)
		if diff := cmp.Diff(whole.String(), parts.String()); diff != "" {
			t.Error(diff)
		}
		for _, other := range []string{"", "nothing", "main.go b/main.go", "main.go\n"} {
			_, _ = patch.Seek(0, io.SeekStart)
			if part, err := PatchOf(patch, other); part != nil || err != nil {
				t.Errorf("%q has a patch, or %v", other, err)
			}
		}
	})
	t.Run("by apply", func(t *testing.T) {
		target := tree(t, project)
		if err := Apply(target, found.Changes, ApplyOptions{Run: "r", Open: from(dest), Check: true}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(project, contents(t, target)); diff != "" {
			t.Fatal("a check wrote something", diff)
		}
		if err := Apply(target, found.Changes, ApplyOptions{Run: "r", Open: from(dest)}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, contents(t, target)); diff != "" {
			t.Error(diff)
		}
		if _, err := os.Stat(filepath.Join(target, "deep")); err == nil {
			t.Error("an emptied directory is left")
		}
		err := Apply(target, found.Changes, ApplyOptions{Run: "r", Open: from(dest)})
		wantFault(t, err, fault.Exists, "applied already")
		if diff := cmp.Diff(want, contents(t, target)); diff != "" {
			t.Error("a second apply wrote something", diff)
		}
	})
	t.Run("by git apply", func(t *testing.T) {
		target := tree(t, project)
		git(t, target, "init", "-q")
		git(t, target, "config", "core.autocrlf", "false")
		git(t, target, "add", "-A")
		git(t, target, "commit", "-qm", "base")
		patch := filepath.Join(dest, PatchName)
		git(t, target, "apply", "--check", patch)
		git(t, target, "apply", "--index", "--whitespace=nowarn", patch)
		if diff := cmp.Diff(want, contents(t, target)); diff != "" {
			t.Error(diff)
		}
		git(t, target, "apply", "--index", "-R", "--whitespace=nowarn", patch)
		if diff := cmp.Diff(project, contents(t, target)); diff != "" {
			t.Error("backwards", diff)
		}
	})
}

func TestApplyIsAllOrNothing(t *testing.T) {
	base := mustStore(t, tree(t, project), Options{})
	work := copyOf(t, base)
	edit(t, work)
	found, dest := compared(t, base, work, CompareOptions{})
	for name, c := range map[string]struct {
		change func(dir string)
		says   []string
	}{
		"an edited file":             {func(dir string) { put(t, dir, "main.go", "mine\n") }, []string{"main.go", "was changed"}},
		"a file that is gone":        {func(dir string) { _ = os.Remove(filepath.Join(dir, "run.sh")) }, []string{"run.sh", "is gone"}},
		"a mode":                     {func(dir string) { _ = os.Chmod(filepath.Join(dir, "run.sh"), 0o755) }, []string{"run.sh", "already"}},
		"a file that is new":         {func(dir string) { put(t, dir, "new.bin", "mine") }, []string{"new.bin", "there already"}},
		"a deleted file, edited":     {func(dir string) { put(t, dir, "gone.txt", "mine") }, []string{"gone.txt", "was changed"}},
		"a directory with more":      {func(dir string) { put(t, dir, "dir/mine", "mine") }, []string{"dir: is a directory"}},
		"a link on the way":          {func(dir string) { put(t, dir, "größe", "-> sub") }, []string{"lies below"}},
		"a link instead of the file": {func(dir string) { put(t, dir, "main.go", "-> long.txt") }, []string{"main.go", "was changed"}},
		"two of them": {func(dir string) {
			put(t, dir, "main.go", "mine\n")
			put(t, dir, "-rf", "mine\n")
		}, []string{"2 of the", "main.go", "-rf"}},
	} {
		t.Run(name, func(t *testing.T) {
			target := tree(t, project)
			c.change(target)
			was := contents(t, target)
			err := Apply(target, found.Changes, ApplyOptions{Run: "r", Open: from(dest)})
			wantFault(t, err, fault.Conflict, c.says...)
			if diff := cmp.Diff(was, contents(t, target)); diff != "" {
				t.Error("something was written", diff)
			}
		})
	}
}

func TestMindsWhatIsDangerous(t *testing.T) {
	base := mustStore(t, tree(t, map[string]string{"a": "x\n", "key": "sk-abcdefghijklmnopqrstuvwxyz\n"}), Options{})
	work := copyOf(t, base)
	for name, content := range map[string]string{
		"a*": "x\n", ".github/workflows/ci.yml": "on: push\n", ".husky/pre-commit": "x", ".env": "A=1", "plain": "text",
		"id": "-----BEGIN OPENSSH PRIVATE KEY-----\n", "key": "sk-abcdefghijklmnopqrstuvwxyz\nmore\n", "l": "-> a",
	} {
		put(t, work, name, content)
	}
	found, _ := compared(t, base, work, CompareOptions{})
	got := map[string]string{}
	for _, c := range found.Changes {
		got[c.Path] = strings.Join(c.Mind, ", ")
	}
	want := map[string]string{
		"a": "can be executed, which is new", ".github/workflows/ci.yml": "runs in CI, is hidden: its name begins with a dot",
		".husky/pre-commit": "is a hook, is hidden: its name begins with a dot", ".env": "is hidden: its name begins with a dot",
		"plain": "", "id": "holds what looks like a key", "key": "", "l": "is a symbolic link",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestManyFilesAreInTheirOrder(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = fmt.Sprint(i)
	}
	base := mustStore(t, tree(t, files), Options{})
	if !slices.IsSortedFunc(base.Manifest.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("the manifest isn't sorted")
	}
	if err := base.Manifest.Verify(t.Context(), base.Dir); err != nil {
		t.Error(err)
	}
	put(t, base.Dir, "d1/f1", "2")
	wantFault(t, base.Manifest.Verify(t.Context(), base.Dir), fault.Internal)
}

func TestAStoredProjectIsSentOn(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a": "one", "sub/b": "two", ".aodignore": "left-out\n", "left-out": "no"})
	if err := errors.Join(os.Symlink("sub/b", filepath.Join(dir, "link")), os.Chmod(filepath.Join(dir, "a"), 0o755)); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "all")
	git(t, dir, "gc", "-q")
	base := mustStore(t, dir, Options{Git: true})
	again, err := Stored(base.Dir)
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	manifest, err := again.Store(to, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(base.Manifest, manifest); diff != "" || !manifest.Git {
		t.Error(diff)
	}
	if diff := cmp.Diff(contents(t, base.Dir), contents(t, to)); diff != "" {
		t.Error(diff)
	}
}
