package capsule

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/api/fault"
)

// contextOf reads a directory as a build context without asking whether it is a capsule.
func contextOf(t *testing.T, dir string) *Context {
	t.Helper()
	x, err := (&Capsule{Dir: dir}).Context()
	must(t, err)
	return x
}

func TestDockerignore(t *testing.T) {
	tree := []string{"Dockerfile", "a.md", "b.txt", "docs/a.md", "docs/README.md", "docs/deep/c.md", "src/main.py", "src/.env", "tmp/x"}
	cases := []struct {
		name   string
		ignore string
		files  []string // regular files that stay, beside Dockerfile and .dockerignore
	}{
		{"nothing is left out without patterns", "# only a comment\n\n", []string{"a.md", "b.txt", "docs/README.md", "docs/a.md", "docs/deep/c.md", "src/.env", "src/main.py", "tmp/x"}},
		{"a star stays within its directory", "*.md", []string{"b.txt", "docs/README.md", "docs/a.md", "docs/deep/c.md", "src/.env", "src/main.py", "tmp/x"}},
		{"two stars reach every directory", "**/*.md", []string{"b.txt", "src/.env", "src/main.py", "tmp/x"}},
		{"a star directory is one level", "*/*.md", []string{"a.md", "b.txt", "docs/deep/c.md", "src/.env", "src/main.py", "tmp/x"}},
		{"a directory takes all below with it", "docs\ntmp/", []string{"a.md", "b.txt", "src/.env", "src/main.py"}},
		{"a leading slash means nothing", "/docs\n/tmp", []string{"a.md", "b.txt", "src/.env", "src/main.py"}},
		{"an exception takes a file back in", "docs\ntmp\nsrc\n!docs/README.md", []string{"a.md", "b.txt", "docs/README.md"}},
		{"the last match decides", "*.md\n!a.md\na.*", []string{"b.txt", "docs/README.md", "docs/a.md", "docs/deep/c.md", "src/.env", "src/main.py", "tmp/x"}},
		{"everything but a directory", "*\n!src", []string{"src/.env", "src/main.py"}},
		{"everything but a directory but a file in it", "*\n!src\nsrc/.env", []string{"src/main.py"}},
		{"an exception anywhere", "*\n!**/README.md", []string{"docs/README.md"}},
		{"an exception with a star for the directory", "*\n!*/README.md", []string{"docs/README.md"}},
		{"the builder's own files are sent all the same", "Dockerfile\n.dockerignore\n*", nil},
		{"a question mark is one character", "?.txt", []string{"a.md", "docs/README.md", "docs/a.md", "docs/deep/c.md", "src/.env", "src/main.py", "tmp/x"}},
		{"hidden files by name anywhere", "**/.env", []string{"a.md", "b.txt", "docs/README.md", "docs/a.md", "docs/deep/c.md", "src/main.py", "tmp/x"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{".dockerignore": c.ignore}
			for _, name := range tree {
				files[name] = name
			}
			want := append([]string{".dockerignore", "Dockerfile"}, c.files...)
			dir := newDirectory(t, files)
			if diff := cmp.Diff(want, regular(contextOf(t, dir))); diff != "" {
				t.Error(diff)
			}
			for name := range files { // asked for one by one, it says the same
				if sent, err := (&Capsule{Dir: dir}).Sends(name); err != nil || sent != slices.Contains(want, name) {
					t.Errorf("%s: %v, %v", name, sent, err)
				}
			}
		})
	}
}

func regular(x *Context) []string {
	var names []string
	for _, name := range x.Files() {
		if !strings.HasSuffix(name, "/") {
			names = append(names, name)
		}
	}
	return names
}

func TestContextWalk(t *testing.T) {
	t.Run("Dockerfile.dockerignore counts instead of .dockerignore", func(t *testing.T) {
		dir := newDirectory(t, map[string]string{"Dockerfile": "x", "a": "", "b": "", ".dockerignore": "a", "Dockerfile.dockerignore": "b"})
		want := []string{".dockerignore", "Dockerfile", "Dockerfile.dockerignore", "a"}
		if diff := cmp.Diff(want, regular(contextOf(t, dir))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the directories above an exception are sent, others that are left out aren't", func(t *testing.T) {
		dir := newDirectory(t, map[string]string{"Dockerfile": "x", ".dockerignore": "a\n!a/b/keep", "a/b/keep": "", "a/c/x": "", "empty/": ""})
		want := []string{".dockerignore", "Dockerfile", "a/", "a/b/", "a/b/keep", "empty/"}
		if diff := cmp.Diff(want, contextOf(t, dir).Files()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a directory that is left out isn't read", func(t *testing.T) {
		dir := newDirectory(t, map[string]string{"Dockerfile": "x", ".dockerignore": "data\n!src/x"})
		must(t, os.Mkdir(filepath.Join(dir, "data"), 0o755))
		must(t, unix.Mkfifo(filepath.Join(dir, "data", "pipe"), 0o644))
		want := []string{".dockerignore", "Dockerfile"}
		if diff := cmp.Diff(want, contextOf(t, dir).Files()); diff != "" {
			t.Error(diff)
		}
	})
	for dir, want := range map[string]bool{"a": true, "a/b": true, "a/b/keep": false, "a/c": false, "x": false} {
		t.Run("whether a/b/keep could lie below "+dir, func(t *testing.T) {
			g, err := parseIgnore(".dockerignore", []byte("*\n!a/b/keep\n"))
			must(t, err)
			if got := g.MayHoldExceptions(dir); got != want {
				t.Errorf("MayHoldExceptions = %v", got)
			}
		})
	}
	t.Run("a pipe is refused by name", func(t *testing.T) {
		dir := newDirectory(t, map[string]string{"Dockerfile": "x"})
		must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
		refused(t, dir, "pipe: it is a named pipe, which no image can hold (remove it, or leave it out with .dockerignore)")
	})
	t.Run("a link in place of .dockerignore is refused", func(t *testing.T) {
		dir := newDirectory(t, map[string]string{"Dockerfile": "x", "other": ""})
		must(t, os.Symlink("other", filepath.Join(dir, ".dockerignore")))
		refused(t, dir, ".dockerignore: it is a symbolic link, not a regular file")
	})
	t.Run("a broken pattern is refused", func(t *testing.T) {
		refused(t, newDirectory(t, map[string]string{"Dockerfile": "x", ".dockerignore": "[a"}), ".dockerignore: it holds a pattern that isn't one")
	})
}

func refused(t *testing.T, dir, want string) {
	t.Helper()
	_, err := (&Capsule{Dir: dir}).Context()
	if !fault.Is(err, fault.Capsule) || !strings.HasPrefix(told(err), want) {
		t.Errorf("Context: %v\n%swant %s", err, told(err), want)
	}
}

func TestTarIsNormalised(t *testing.T) {
	dir := newDirectory(t, map[string]string{"Dockerfile": "x", "bin/tool": "#!", "hard": "same"})
	must(t, os.Chmod(filepath.Join(dir, "bin/tool"), 0o4710))
	must(t, os.Link(filepath.Join(dir, "hard"), filepath.Join(dir, "hard2")))
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	var out bytes.Buffer
	must(t, contextOf(t, dir).WriteTar(&out))

	var got []string
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		body, err := io.ReadAll(r)
		must(t, err)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s says who made it, or when: %+v", h.Name, h)
		}
		got = append(got, strings.Join([]string{string(h.Typeflag), h.FileInfo().Mode().Perm().String(), h.Name, h.Linkname, string(body)}, " "))
	}
	want := []string{
		"0 -rw-r--r-- Dockerfile  x",
		"5 -rwxr-xr-x bin/  ",
		"0 -rwxr-xr-x bin/tool  #!",
		"0 -rw-r--r-- hard  same",
		"0 -rw-r--r-- hard2  same",
		"2 -rwxrwxrwx link /etc/passwd ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDigest(t *testing.T) {
	files := map[string]string{"Dockerfile": "x", "src/a": "1", "src/b": "2", "z/": ""}
	digest := contextOf(t, newDirectory(t, files)).Digest
	if len(digest) != 64 {
		t.Fatalf("digest %q", digest)
	}
	changes := []struct {
		name   string
		same   bool
		change func(dir string) error
	}{
		{"another directory with the same content", true, func(string) error { return nil }},
		{"another time", true, func(dir string) error { return os.Chtimes(dir+"/src/a", time.Unix(1, 0), time.Unix(1, 0)) }},
		{"another mode that isn't about executing", true, func(dir string) error { return os.Chmod(dir+"/src/a", 0o600) }},
		{"another order on disk", true, func(dir string) error {
			return errors.Join(os.Remove(dir+"/src/a"), os.WriteFile(dir+"/src/a", []byte("1"), 0o644))
		}},
		{"another owner", true, func(dir string) error {
			if os.Getuid() != 0 {
				return nil
			}
			return os.Lchown(dir+"/src/a", 12345, 12345)
		}},
		{"another content", false, func(dir string) error { return os.WriteFile(dir+"/src/a", []byte("3"), 0o644) }},
		{"another name", false, func(dir string) error { return os.Rename(dir+"/src/a", dir+"/src/c") }},
		{"an executable bit", false, func(dir string) error { return os.Chmod(dir+"/src/a", 0o755) }},
		{"an empty directory less", false, func(dir string) error { return os.Remove(dir + "/z") }},
		{"a link for a file", false, func(dir string) error { return errors.Join(os.Remove(dir+"/src/a"), os.Symlink("b", dir+"/src/a")) }},
	}
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			dir := newDirectory(t, files)
			must(t, c.change(dir))
			if got := contextOf(t, dir).Digest; (got == digest) != c.same {
				t.Errorf("the digest is the same: %v, want %v", got == digest, c.same)
			}
		})
	}
}

func TestWriteTarNoticesChanges(t *testing.T) {
	changes := map[string]func(file string) error{
		"a file that grew":             func(f string) error { return os.WriteFile(f, []byte("A and more"), 0o644) },
		"a file that shrank":           func(f string) error { return os.WriteFile(f, nil, 0o644) },
		"a file of the same size":      func(f string) error { return os.WriteFile(f, []byte("B"), 0o644) },
		"a file that is gone":          os.Remove,
		"a file that became a link":    func(f string) error { return errors.Join(os.Remove(f), os.Symlink("Dockerfile", f)) },
		"a file that became a pipe":    func(f string) error { return errors.Join(os.Remove(f), unix.Mkfifo(f, 0o644)) },
		"a directory that is gone too": func(f string) error { return os.RemoveAll(filepath.Dir(f)) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			dir := newDirectory(t, map[string]string{"Dockerfile": "x", "src/a": "A"})
			x := contextOf(t, dir)
			must(t, change(filepath.Join(dir, "src/a")))
			var out bytes.Buffer
			if err := x.WriteTar(&out); !fault.Is(err, fault.Capsule) {
				t.Errorf("WriteTar: %v", err)
			}
			r := tar.NewReader(&out)
			var err error
			for err == nil {
				_, err = r.Next()
			}
			if out.Len() >= 1024 && bytes.HasSuffix(out.Bytes(), make([]byte, 1024)) {
				t.Error("the stream was ended as if it were whole")
			}
		})
	}
}

func TestWriteTarMatchesDigestEveryTime(t *testing.T) {
	x := contextOf(t, newDirectory(t, map[string]string{"Dockerfile": "x", strings.Repeat("d", 120) + "/" + strings.Repeat("long", 40): "ü"}))
	var first, second bytes.Buffer
	must(t, x.WriteTar(&first))
	must(t, x.WriteTar(&second))
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two tars of one context differ")
	}
}
