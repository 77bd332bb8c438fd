package workspace

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// tree makes a directory of files, by name. A name that ends in "*" is executable, a content that
// begins with "-> " is a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		put(t, dir, name, content)
	}
	return dir
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	name, program := strings.CutSuffix(name, "*")
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if target, isLink := strings.CutPrefix(content, "-> "); isLink {
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return
	}
	mode := os.FileMode(0o644)
	if program {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// contents reads a directory back in the form that tree takes, without what is git's.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && entry.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if entry.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			files[name] = "-> " + target
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode()&0o100 != 0 {
			name += "*"
		}
		raw, _ := os.ReadFile(path)
		files[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// stored scans a project and stores it.
func stored(t *testing.T, dir string, o Options) (Base, error) {
	t.Helper()
	p, err := Scan(t.Context(), dir, o)
	if err != nil {
		return Base{}, err
	}
	in, out := io.Pipe()
	go func() { _ = out.CloseWithError(p.WriteTar(out)) }()
	base := Base{Dir: t.TempDir()}
	base.Manifest, err = Unpack(base.Dir, in, o)
	return base, err
}

func mustStore(t *testing.T, dir string, o Options) Base {
	t.Helper()
	base, err := stored(t, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// copyOf is what a run gets of a base.
func copyOf(t *testing.T, base Base) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "project")
	if err := Clone(t.Context(), base.Dir, dir, CloneOptions{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func compared(t *testing.T, base Base, dir string, o CompareOptions) (found api.Changes, dest string) {
	t.Helper()
	dest = filepath.Join(t.TempDir(), "changes")
	found, err := Compare(t.Context(), base, dir, dest, o)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dest, ChangesName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadChanges(raw); err != nil {
		t.Errorf("its own changes are refused: %v", err)
	}
	return found, dest
}

func from(dest string) func(api.Change) (io.ReadCloser, error) {
	return func(c api.Change) (io.ReadCloser, error) {
		return os.Open(filepath.Join(dest, ContentsName, c.Path))
	}
}

func wantFault(t *testing.T, err error, kind fault.Kind, parts ...string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("got %v, want a fault of the kind %s", err, kind)
	}
	text := fault.Public(err).Msg + " " + fault.Public(err).Hint
	for _, f := range fault.Public(err).Findings {
		text += " " + f.String()
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q doesn't say %q", text, part)
		}
	}
}

func random(n int) string { return strings.Repeat("\x00\x01\xfe binary ", n) }
