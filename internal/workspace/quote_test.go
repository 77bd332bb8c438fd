package workspace

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// Git reads each name as it was written.
func TestGitReadsQuotedNames(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	var patch strings.Builder
	var want []string
	for c := 1; c < 256; c++ {
		if name := "a" + string([]byte{byte(c)}) + "b"; c != '/' {
			want = append(want, name)
			fmt.Fprintf(&patch, "diff --git %s %s\nnew file mode 100644\nindex %s..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n", quoteName("a/"+name), quoteName("b/"+name), noBlob)
		}
	}
	path := filepath.Join(dir, "p")
	if err := os.WriteFile(path, []byte(patch.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range strings.Split(strings.TrimSuffix(git(t, dir, "apply", "--numstat", "-z", path), "\x00"), "\x00") {
		got = append(got, strings.TrimPrefix(line, "0\t0\t"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// unquoted is what git makes of a quoted name.
func unquoted(name string) (string, error) {
	if !strings.HasPrefix(name, `"`) {
		return name, nil
	}
	return strconv.Unquote(name)
}

func FuzzQuotedNames(f *testing.F) {
	for _, name := range []string{"a", "a b", "a\nb", `"`, "\\", "größe", "\x00\xff", ""} {
		f.Add(name)
	}
	fuzzbound.Run(f, func(t *testing.T, name string) {
		quoted := quoteName(name)
		got, err := unquoted(quoted)
		if err != nil || got != name {
			t.Errorf("%q is quoted as %s, which is %q: %v", name, quoted, got, err)
		}
		if strings.ContainsAny(quoted, "\n\r") {
			t.Errorf("%q breaks the line", quoted)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("no tar"))
	for _, files := range []map[string]string{{"a": "-> b", "b": "x"}, {"run": "x", "b": "y"}} {
		dir := f.TempDir()
		for name, content := range files {
			if target, isLink := strings.CutPrefix(content, "-> "); isLink {
				_ = os.Symlink(target, filepath.Join(dir, name))
			} else if !strings.Contains(name, "/") {
				_ = os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)
			}
		}
		p, err := Scan(f.Context(), dir, Options{})
		if err != nil {
			f.Fatal(err)
		}
		var b bytes.Buffer
		if err := p.WriteTar(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		above := t.TempDir()
		dir := filepath.Join(above, "base")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		m, err := Unpack(dir, bytes.NewReader(raw), Options{Limits: Limits{Bytes: 1 << 20, Files: 100}})
		if entries, _ := os.ReadDir(above); len(entries) != 1 {
			t.Error("something was written outside")
		}
		if err != nil {
			return
		}
		if err := m.Verify(t.Context(), dir); err != nil {
			t.Error(err)
		}
		if err := Clone(t.Context(), dir, filepath.Join(above, "copy"), CloneOptions{}); err != nil {
			t.Error(err)
		}
		found, err := Compare(t.Context(), Base{Dir: dir, Manifest: m}, filepath.Join(above, "copy"), filepath.Join(above, "changes"), CompareOptions{})
		if err != nil && !strings.Contains(err.Error(), IgnoreFile) || len(found.Changes) > 0 {
			t.Error(err, found)
		}
	})
}

func FuzzReadChanges(f *testing.F) {
	sum := strings.Repeat("a", 64)
	f.Add([]byte(`{"changes":[{"path":"x","op":"add","mode":"100644","after":"` + sum + `","size":1}]}`))
	f.Add([]byte(`{"partial":true,"changes":[{"path":"a/b","op":"modify","mode":"120000","mode_was":"100644","before":"` + sum + `","after":"` + sum + `"}],"warnings":["w"]}`))
	f.Add([]byte(`{}`))
	fuzzbound.Run(f, func(t *testing.T, raw []byte) {
		found, err := ReadChanges(raw)
		if err != nil {
			return
		}
		for _, c := range found.Changes {
			if !filepath.IsLocal(c.Path) || inGit(c.Path) {
				t.Errorf("%q would be written", c.Path)
			}
		}
		again, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadChanges(again); err != nil {
			t.Errorf("what was read is refused when it is written again: %v", err)
		}
		_ = Apply(t.TempDir(), found.Changes, ApplyOptions{Check: true})
	})
}

// A patch of any two texts is what git makes one of the other with.
func TestPatchesOfManyTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(60) {
			fmt.Fprintf(&b, "%d%s", random.IntN(4), []string{"\n", "\n", "\n", "\r\n", "", "\n\n", "\xff\n"}[random.IntN(7)])
		}
		return b.String()
	}
	was, now := map[string]string{}, map[string]string{}
	for i := range 300 {
		was[fmt.Sprint(i)], now[fmt.Sprint(i)] = text(), text()
	}
	base := mustStore(t, tree(t, was), Options{})
	work := copyOf(t, base)
	for name, content := range now {
		put(t, work, name, content)
	}
	_, dest := compared(t, base, work, CompareOptions{})
	target := tree(t, was)
	git(t, target, "init", "-q")
	git(t, target, "apply", "--whitespace=nowarn", filepath.Join(dest, PatchName))
	if diff := cmp.Diff(now, contents(t, target)); diff != "" {
		t.Error(diff)
	}
}

func TestALiteralIsCompressedInLines(t *testing.T) {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	if err := writeLiteral(w, strings.NewReader("hello"), 5); err != nil {
		t.Fatal(err)
	}
	_ = w.Flush()
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = io.WriteString(z, "hello")
	_ = z.Close()
	lines := strings.Split(b.String(), "\n")
	if lines[0] != "literal 5" || int(lines[1][0]-'A'+1) != packed.Len() || lines[2] != "" {
		t.Errorf("%q", lines)
	}
}
