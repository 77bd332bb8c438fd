package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

const aPatch = `diff --git a/notes.txt b/notes.txt
index 1..2 100644
--- a/notes.txt
+++ b/notes.txt
@@ -1,3 +1,3 @@
-thee ferry
+the ferry
 diff --git a/x b/x
-- removed
+@@ -1 +1 @@
\ No newline at end of file
diff --git a/run.sh b/run.sh
new file mode 100755
index 0..1
--- /dev/null
+++ b/run.sh
@@ -0,0 +1 @@
+#!/bin/sh
diff --git "a/odd \"\303\244.txt" "b/odd \"\303\244.txt"
old mode 100644
new mode 100755
diff --git a/blob b/blob
index 1..2 100644
GIT binary patch
literal 5
McmZQzWMT#Y01f~L

`

func told(files []*fileDiff) (list []string) {
	for _, f := range files {
		list = append(list, fmt.Sprintf("%s +%d -%d left %d binary %v %v", f.Name, f.Plus, f.Minus, f.Left, f.Binary, f.Told))
		for _, row := range f.Rows {
			list = append(list, row.Class+"|"+row.Old+"|"+row.New+"|"+row.Text)
		}
	}
	return list
}

var wide = diffBounds{Bytes: 1 << 20, Files: 10, Lines: 100, Each: 100}

func TestAPatchIsReadByFiles(t *testing.T) {
	t.Parallel()
	files, whole, err := readDiff(strings.NewReader(aPatch), wide)
	want := []string{
		"notes.txt +2 -2 left 0 binary false []", "hunk|||@@ -1,3 +1,3 @@", "del|1||thee ferry", "add||1|the ferry",
		"|2|2|diff --git a/x b/x", "del|3||- removed", "add||3|@@ -1 +1 @@", "hunk|||No newline at end of file",
		"run.sh +1 -0 left 0 binary false [new file mode 100755]", "hunk|||@@ -0,0 +1 @@", "add||1|#!/bin/sh",
		`odd "ä.txt +0 -0 left 0 binary false [old mode 100644 new mode 100755]`,
		"blob +0 -0 left 0 binary true []",
	}
	if diff := cmp.Diff(want, told(files)); diff != "" || !whole || err != nil {
		t.Error(whole, err, diff)
	}
}

func TestWhatIsShownOfAPatchIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most  diffBounds
		whole bool
		want  string
	}{
		"files":         {diffBounds{Bytes: 1 << 20, Files: 1, Lines: 9, Each: 9}, false, "notes.txt +2 -2 left 0"},
		"lines":         {diffBounds{Bytes: 1 << 20, Files: 9, Lines: 3, Each: 9}, true, "notes.txt +2 -2 left 3"},
		"lines of each": {diffBounds{Bytes: 1 << 20, Files: 9, Lines: 9, Each: 2}, true, "notes.txt +2 -2 left 4"},
		"bytes":         {diffBounds{Bytes: 128, Files: 9, Lines: 9, Each: 9}, false, "notes.txt +1 -1 left 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, whole, err := readDiff(strings.NewReader(aPatch), c.most)
			if got := told(files); err != nil || whole != c.whole || !strings.HasPrefix(got[0], c.want) {
				t.Error(whole, err, got)
			}
		})
	}
}

func TestAllOfALineIsSeen(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"a\tb": "a\tb", "safe\revil": "safe<U+000D>evil", "a\u202eb\x1b[31m\x00": "a<U+202E>b<U+001B>[31m<U+0000>", "\xff": "\uFFFD",
		strings.Repeat("é", 600): strings.Repeat("é", 501) + " … (the line is longer)",
	} {
		if got := shownLine([]byte(line)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Whatever a patch is, what is shown of it is bounded.
func FuzzDiff(f *testing.F) {
	f.Add(aPatch)
	f.Add("diff --git a/x b/x\n@@ -1,4294967295 +1 @@\n" + strings.Repeat("x", 3000))
	f.Add("diff --git \"a/\\n\" \"b/\\n\"\n@@ -\n@@ -1 +\n\\ x\n")
	fuzzbound.Run(f, func(t *testing.T, patch string) {
		most := diffBounds{Bytes: 4 << 10, Files: 3, Lines: 20, Each: 10}
		files, _, err := readDiff(strings.NewReader(patch), most)
		if err != nil || len(files) > most.Files {
			t.Fatal(len(files), err)
		}
		rows := 0
		for _, one := range files {
			rows += len(one.Rows)
			for _, row := range one.Rows {
				if len(row.Text) > 10*mostColumns {
					t.Fatalf("a line of %d bytes", len(row.Text))
				}
			}
		}
		if rows > most.Lines {
			t.Fatalf("%d rows", rows)
		}
	})
}
