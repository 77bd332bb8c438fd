package workspace

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestTakesWhatGitTakes(t *testing.T) {
	dir := tree(t, map[string]string{
		".gitignore": ".env\nout/\n", ".env": "SECRET=1", "out/x": "built", "kept": "a", "deleted": "b", "new": "untracked",
		"left": "x", ".aodignore": "left\n", "nested/file": "n",
	})
	git(t, dir, "init", "-q")
	git(t, dir, "add", "kept", "deleted", ".gitignore")
	git(t, filepath.Join(dir, "nested"), "init", "-q")
	if err := os.Remove(filepath.Join(dir, "deleted")); err != nil {
		t.Fatal(err)
	}
	p, err := Scan(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{".aodignore", ".gitignore", "kept", "new"}; !slices.Equal(p.names, want) {
		t.Errorf("it takes %v, want %v", p.names, want)
	}
	if want := []string{"nested/"}; !slices.Equal(p.Skipped(), want) {
		t.Errorf("it skips %v, want %v", p.Skipped(), want)
	}
	t.Run("of a directory in it, too", func(t *testing.T) {
		put(t, dir, "sub/a", "a")
		put(t, dir, "sub/out/b", "b")
		p, err := Scan(t.Context(), filepath.Join(dir, "sub"), Options{})
		if err != nil || !slices.Equal(p.names, []string{"a"}) {
			t.Errorf("it takes %v, %v", p.names, err)
		}
	})
	t.Run("and says so where it takes nothing", func(t *testing.T) {
		_, err := Scan(t.Context(), filepath.Join(dir, "out"), Options{})
		wantFault(t, err, fault.Input, "git ignores everything")
	})
	t.Run("and nothing where there is no git to ask", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := Scan(t.Context(), dir, Options{})
		wantFault(t, err, fault.Unavailable, "no git")
	})
}

// A repository is a stranger's as often as not: its settings start programs of theirs.
func TestARepositoryStartsNothing(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x"})
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	mark := filepath.Join(t.TempDir(), "started")
	put(t, dir, "evil*", "#!/bin/sh\ntouch "+mark+"\n")
	evil := filepath.Join(dir, "evil")
	for _, key := range []string{"core.fsmonitor", "core.sshCommand", "core.pager", "diff.external", "filter.x.clean", "core.editor", "credential.helper", "core.hooksPath"} {
		git(t, dir, "config", key, evil)
	}
	put(t, dir, ".git/hooks/post-index-change*", "#!/bin/sh\ntouch "+mark+"\n")
	put(t, dir, ".gitattributes", "* filter=x\n")
	if _, err := Scan(t.Context(), dir, Options{Git: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program of the repository was started")
	}
}

func TestTakesAllButIgnoredWithoutGit(t *testing.T) {
	dir := tree(t, map[string]string{
		"a": "x", ".hidden": "x", "node_modules/x/y": "x", "sub/b": "x", "sub/keep.log": "x", "c.log": "x", ".aodignore": "node_modules\n**/*.log\n*.log\n!sub/keep.log\n",
	})
	p, err := Scan(t.Context(), dir, Options{Ignore: []string{"sub/b"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{".aodignore", ".hidden", "a", "sub/keep.log"}; !slices.Equal(p.names, want) {
		t.Errorf("it takes %v, want %v", p.names, want)
	}
}

func TestRefusesWhatIsNoProject(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", filepath.Join(home, "me"))
	if err := os.Mkdir(filepath.Join(home, "me"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/", home, filepath.Join(home, "me")} {
		_, err := Scan(t.Context(), dir, Options{})
		wantFault(t, err, fault.Input, "home directory")
	}
	_, err := Scan(t.Context(), filepath.Join(home, "nowhere"), Options{})
	wantFault(t, err, fault.Input)
	for name, c := range map[string]struct {
		files map[string]string
		make  func(dir string) error
		kind  fault.Kind
		says  string
	}{
		"a link out":                    {files: map[string]string{"l": "-> ../x"}, kind: fault.Input, says: "leads out"},
		"an absolute link":              {files: map[string]string{"l": "-> /etc/passwd"}, kind: fault.Input, says: "leads out"},
		"a link out behind another one": {files: map[string]string{"d/up": "-> ..", "l": "-> d/up/../.."}, kind: fault.Input, says: "plainly"},
		"a link into .git":              {files: map[string]string{"d/l": "-> ../.GIT/hooks"}, kind: fault.Input, says: "into .git"},
		"a FIFO":                        {make: func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "f"), 0o644) }, kind: fault.Input, says: "a FIFO"},
		"a socket":                      {make: func(dir string) error { return syscall.Mknod(filepath.Join(dir, "s"), syscall.S_IFSOCK|0o644, 0) }, kind: fault.Input, says: "a socket"},
		"a name that isn't UTF-8":       {files: map[string]string{"a\xff": "x"}, kind: fault.Input, says: "UTF-8"},
		"2 GiB":                         {make: func(dir string) error { return sparse(filepath.Join(dir, "big"), 2<<30) }, kind: fault.TooLarge, says: "1GiB"},
		"a deep tree": {
			make: func(dir string) error { return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 70)), 0o755) },
			kind: fault.Input, says: "nested",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, c.files)
			if c.make != nil {
				if err := c.make(dir); err != nil {
					t.Skip(err)
				}
			}
			_, err := Scan(t.Context(), dir, Options{})
			wantFault(t, err, c.kind, c.says)
		})
	}
	t.Run("too many files", func(t *testing.T) {
		dir := t.TempDir()
		for i := range 21 {
			put(t, dir, fmt.Sprint(i), "")
		}
		_, err := Scan(t.Context(), dir, Options{Limits: Limits{Files: 20}})
		wantFault(t, err, fault.TooLarge, "more than 20 files", ".aodignore")
		git(t, dir, "init", "-q")
		_, err = Scan(t.Context(), dir, Options{Limits: Limits{Files: 20}})
		wantFault(t, err, fault.TooLarge, "more than 20 files")
	})
}

func TestSixtyThousandFilesAreTooMany(t *testing.T) {
	dir := t.TempDir()
	for i := range 60_000 {
		if err := os.Symlink("x", filepath.Join(dir, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Scan(t.Context(), dir, Options{})
	wantFault(t, err, fault.TooLarge, "more than 50000 files")
}

func sparse(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(size)
}

func TestLinksInCyclesAreKeptAsTheyAre(t *testing.T) {
	files := map[string]string{"a": "-> b", "b": "-> a", "d/self": "-> ..", "d/x": "-> self/d/x", "lost": "-> nowhere/at/all"}
	base := mustStore(t, tree(t, files), Options{})
	work := copyOf(t, base)
	if diff := cmp.Diff(files, contents(t, work)); diff != "" {
		t.Error(diff)
	}
	if found, _ := compared(t, base, work, CompareOptions{}); len(found.Changes) > 0 {
		t.Error(found)
	}
}

func TestFilesThatChangeWhileTheyAreRead(t *testing.T) {
	dir := tree(t, map[string]string{"a": "12345", "b": "x"})
	for name, change := range map[string]func() error{
		"it grows":         func() error { return os.WriteFile(filepath.Join(dir, "a"), []byte("123456"), 0o644) },
		"it is gone":       func() error { return nil },
		"it becomes a dir": func() error { return os.Mkdir(filepath.Join(dir, "a"), 0o755) },
	} {
		_ = os.RemoveAll(filepath.Join(dir, "a"))
		put(t, dir, "a", "12345")
		p, err := Scan(t.Context(), dir, Options{Limits: Limits{Bytes: 6}})
		if err != nil {
			t.Fatal(err)
		}
		_ = os.RemoveAll(filepath.Join(dir, "a"))
		if err := change(); err != nil {
			t.Fatal(err)
		}
		err = p.WriteTar(io.Discard)
		if name == "it grows" { // to no more than it may have
			continue
		}
		wantFault(t, err, fault.Conflict, `"a" changed`)
	}
	put(t, dir, "a", "12345")
	p, err := Scan(t.Context(), dir, Options{Limits: Limits{Bytes: 6}})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, "a", strings.Repeat("x", 1000))
	wantFault(t, p.WriteTar(io.Discard), fault.Conflict)
}

func TestGitComesWithoutHooksAndRemotes(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1\n"})
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "first")
	git(t, dir, "update-ref", "refs/remotes/origin/main", "HEAD")
	git(t, dir, "pack-refs", "--all")
	git(t, dir, "branch", "loose")
	git(t, dir, "update-ref", "refs/remotes/origin/loose", "HEAD")
	git(t, dir, "remote", "add", "origin", "https://token@example.com/x")
	git(t, dir, "config", "alias.x", "!touch x")
	put(t, dir, ".git/hooks/pre-commit*", "#!/bin/sh\n")
	base := mustStore(t, dir, Options{Git: true})
	if !base.Manifest.Git || len(base.Manifest.Entries) != 1 {
		t.Errorf("the manifest is %v", base.Manifest)
	}
	work := copyOf(t, base)
	if out := git(t, work, "status", "--short"); out != "" {
		t.Error(out)
	}
	if out := git(t, work, "for-each-ref", "--format=%(refname)"); !strings.Contains(out, "refs/heads/loose") || strings.Contains(out, "remotes") {
		t.Error(out)
	}
	if out := git(t, work, "config", "--local", "--list"); strings.Contains(out, "token") || strings.Contains(out, "alias") {
		t.Error(out)
	}
	if _, err := os.Stat(filepath.Join(work, ".git/hooks/pre-commit")); err == nil {
		t.Error("a hook came along")
	}
	put(t, work, "a", "2\n")
	git(t, work, "commit", "-qam", "second")
	found, _ := compared(t, base, work, CompareOptions{})
	if len(found.Changes) != 1 || len(found.Warnings) != 0 {
		t.Error(found)
	}
	t.Run("and not of a linked work tree", func(t *testing.T) {
		linked := filepath.Join(t.TempDir(), "linked")
		git(t, dir, "worktree", "add", "-q", linked)
		_, err := Scan(t.Context(), linked, Options{Git: true})
		wantFault(t, err, fault.Input, "no .git directory")
		if _, err := Scan(t.Context(), linked, Options{}); err != nil {
			t.Error(err)
		}
	})
}

func archive(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = 1
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestReadsTarsOfStrangers(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	for name, c := range map[string]struct {
		tar  []tar.Header
		says string
	}{
		"a path out":             {[]tar.Header{file("../x")}, "relative path"},
		"an absolute path":       {[]tar.Header{file("/x")}, "relative path"},
		"a path that isn't":      {[]tar.Header{file("a//b")}, "relative path"},
		"a link out":             {[]tar.Header{link("l", "../x")}, "leads out"},
		"a hard link":            {[]tar.Header{file("a"), {Typeflag: tar.TypeLink, Name: "b", Linkname: "a"}}, "hard link"},
		"a device":               {[]tar.Header{{Typeflag: tar.TypeChar, Name: "d"}}, "neither a file"},
		"a FIFO":                 {[]tar.Header{{Typeflag: tar.TypeFifo, Name: "d"}}, "neither a file"},
		"a file twice":           {[]tar.Header{file("a"), file("a")}, "twice"},
		"a file below a file":    {[]tar.Header{file("a"), file("a/b")}, "twice"},
		"a file below a link":    {[]tar.Header{link("l", "d"), file("d/x"), file("l/x")}, "twice"},
		"a link below a link":    {[]tar.Header{file("d/x"), link("l", "d"), link("l/y", "x")}, "twice"},
		"a file in a link's way": {[]tar.Header{file("a"), link("a", "b")}, "twice"},
		"settings of git":        {[]tar.Header{file(".git/config")}, "settings"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := Unpack(dir, archive(t, c.tar...), Options{})
			wantFault(t, err, fault.Input, c.says)
		})
	}
	t.Run("and leaves out what never comes along", func(t *testing.T) {
		dir := t.TempDir()
		m, err := Unpack(dir, archive(t, file("./a"), file(".git/hooks/x"), file("s/.git/config"), file("s/.GIT/x"), file(".aod-apply/journal"), file("b"),
			tar.Header{Typeflag: tar.TypeDir, Name: "empty/"}), Options{Ignore: []string{"b"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Collect(maps.Keys(contents(t, dir))); !slices.Equal(got, []string{"a"}) || len(m.Entries) != 1 {
			t.Error(got, m)
		}
	})
	t.Run("and no archive at all", func(t *testing.T) {
		whole, _ := io.ReadAll(archive(t, file("a"), file("b")))
		for _, raw := range [][]byte{[]byte("no tar, whatever it says"), whole[:1100], bytes.Repeat([]byte{1}, 2000)} {
			_, err := Unpack(t.TempDir(), bytes.NewReader(raw), Options{})
			wantFault(t, err, fault.Input, "tar archive")
		}
	})
	t.Run("and no more than fits", func(t *testing.T) {
		_, err := Unpack(t.TempDir(), archive(t, file("a"), file("b"), file("c")), Options{Limits: Limits{Files: 2}})
		wantFault(t, err, fault.TooLarge, "more than 2 files")
		_, err = Unpack(t.TempDir(), archive(t, file("a"), file("b"), file("c")), Options{Limits: Limits{Bytes: 2}})
		wantFault(t, err, fault.TooLarge)
	})
}
