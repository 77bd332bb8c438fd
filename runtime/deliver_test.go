package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// destinations are directories to deliver to by how the files get there.
func destinations(t *testing.T) map[string]func(t *testing.T) string {
	t.Helper()
	return map[string]func(t *testing.T) string{
		"by a rename": func(t *testing.T) string { return filepath.Join(t.TempDir(), "new", "out") },
		"by a copy":   func(t *testing.T) string { return filepath.Join(otherFileSystem(t), "new", "out") },
	}
}

// everything collects and delivers what lies in /io/output.
func everything(t *testing.T, l Layout, dest string) ([]File, error) {
	t.Helper()
	listing, err := l.Collect(DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return l.Deliver(listing.Files, dest)
}

func TestDeliverBringsTheFilesOut(t *testing.T) {
	for how, dest := range destinations(t) {
		t.Run(how, func(t *testing.T) {
			l, dest := newLayout(t), dest(t)
			write(t, l.path("io/output/a"), "content")
			write(t, l.path("io/output/sub/"+long), "")
			suid := l.path("io/output/suid")
			write(t, suid, "x")
			if err := os.Chmod(suid, 0o777|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky); err != nil {
				t.Fatal(err)
			}
			files, err := everything(t, l, dest)
			if err != nil {
				t.Fatal(err)
			}
			want := []File{
				{"a", dest + "/a", 7, digest("content")},
				{"sub/" + long, dest + "/sub/" + long, 0, digest("")},
				{"suid", dest + "/suid", 1, digest("x")},
			}
			if diff := cmp.Diff(want, files); diff != "" {
				t.Error(diff)
			}
			for _, f := range files {
				if m := mode(t, f.Path); m != 0o644 || digest(read(t, f.Path)) != f.SHA256 {
					t.Errorf("%s has mode %v", f.Name, m)
				}
			}
			if got := tree(t, dest); len(got) != 4 {
				t.Errorf("there is more in it: %q", got)
			}
		})
	}
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// tree lists everything below dir.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
		if name != "." {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestDeliverMakesNoDirectoryForNothing(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "out")
	if files, err := newLayout(t).Deliver(nil, dest); err != nil || files != nil {
		t.Error(files, err)
	}
	if _, err := os.Lstat(dest); err == nil {
		t.Error("it was made")
	}
}

func TestDeliverSaysWhereThoughItWasToldARelativeDirectory(t *testing.T) {
	l := newLayout(t)
	write(t, l.path("io/output/a"), "x")
	here := t.TempDir()
	t.Chdir(here)
	files, err := everything(t, l, "out")
	if err != nil || len(files) != 1 || files[0].Path != filepath.Join(here, "out", "a") {
		t.Errorf("%+v, %v", files, err)
	}
}

func TestDeliverMeetsWhatIsThereAlready(t *testing.T) {
	cases := []struct {
		name    string
		clash   func(t *testing.T, dest string)
		refused bool
	}{
		{"a file is replaced", func(t *testing.T, dest string) { write(t, dest+"/d/x", "old") }, false},
		{"a link is replaced, not followed", func(t *testing.T, dest string) {
			write(t, dest+"/d/y", "")
			link(t, filepath.Join(dest, "../outside/x"), dest+"/d/x")
		}, false},
		{"a FIFO is replaced", func(t *testing.T, dest string) {
			write(t, dest+"/d/y", "")
			fifo(t, dest+"/d/x")
		}, false},
		{"a directory stays", func(t *testing.T, dest string) { write(t, dest+"/d/x/y", "") }, true},
		{"a file stays where a directory is needed", func(t *testing.T, dest string) { write(t, dest+"/d", "old") }, true},
		{"a link out of the directory is not followed", func(t *testing.T, dest string) { link(t, "../outside", dest+"/d") }, true},
		{"nor an absolute one", func(t *testing.T, dest string) { link(t, filepath.Join(dest, "../outside"), dest+"/d") }, true},
		{"a link inside the directory is", func(t *testing.T, dest string) {
			write(t, dest+"/e/y", "")
			link(t, "e", dest+"/d")
		}, false},
	}
	for how, destination := range destinations(t) {
		for _, c := range cases {
			t.Run(c.name+" "+how, func(t *testing.T) {
				l, dest := newLayout(t), destination(t)
				write(t, filepath.Dir(dest)+"/outside/x", "outside")
				if err := os.Mkdir(dest, 0o755); err != nil {
					t.Fatal(err)
				}
				c.clash(t, dest)
				before := tree(t, dest)
				write(t, l.path("io/output/d/x"), "new")
				files, err := everything(t, l, dest)
				if got := read(t, filepath.Dir(dest)+"/outside/x"); got != "outside" {
					t.Errorf("outside there is %q", got)
				}
				if !c.refused {
					if err != nil || len(files) != 1 || read(t, dest+"/d/x") != "new" {
						t.Errorf("%+v, %v", files, err)
					}
					return
				}
				if !fault.Is(err, fault.Unavailable) || fault.Public(err).Hint == "" || !strings.Contains(err.Error(), `"d/x"`) {
					t.Error(err)
				}
				if diff := cmp.Diff(before, tree(t, dest)); diff != "" {
					t.Errorf("something was left there: %s", diff)
				}
			})
		}
	}
}

func TestDeliverRefusesWhatWasReplacedSinceItWasListed(t *testing.T) {
	cases := map[string]func(t *testing.T, l Layout, secret string){
		"by a link":        func(t *testing.T, l Layout, secret string) { link(t, secret, l.path("io/output/d/x")) },
		"by a link inside": func(t *testing.T, l Layout, _ string) { link(t, "../y", l.path("io/output/d/x")) },
		"by a FIFO":        func(t *testing.T, l Layout, _ string) { fifo(t, l.path("io/output/d/x")) },
		"by nothing":       func(*testing.T, Layout, string) {},
		"its directory by a link": func(t *testing.T, l Layout, secret string) {
			replaceDir(t, l.path("io/output/d"), filepath.Dir(secret))
		},
	}
	for how, destination := range destinations(t) {
		for name, swap := range cases {
			t.Run(name+" "+how, func(t *testing.T) {
				l, dest := newLayout(t), destination(t)
				secret := filepath.Join(filepath.Dir(filepath.Dir(dest)), "host", "x")
				write(t, secret, "secret")
				if err := os.Chmod(secret, 0o600); err != nil {
					t.Fatal(err)
				}
				write(t, l.path("io/output/y"), "y")
				write(t, l.path("io/output/d/x"), "x")
				listing, err := l.Collect(DefaultLimits())
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(l.path("io/output/d/x")); err != nil {
					t.Fatal(err)
				}
				swap(t, l, secret)
				files, err := l.Deliver(listing.Files, dest)
				if !fault.Is(err, fault.Unavailable) {
					t.Errorf("%+v, %v", files, err)
				}
				if read(t, secret) != "secret" || mode(t, secret) != 0o600 {
					t.Error("a file of the host was touched")
				}
			})
		}
	}
}

func replaceDir(t *testing.T, dir, target string) {
	t.Helper()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	link(t, target, dir)
}

func TestDeliverNeedsADirectoryItCanWriteTo(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	l := newLayout(t)
	write(t, l.path("io/output/x"), "x")
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, dest := range []string{closed, closed + "/new", "/dev/null/x"} {
		if files, err := everything(t, l, dest); !fault.Is(err, fault.Unavailable) || len(files) > 0 {
			t.Errorf("%s: %+v, %v", dest, files, err)
		}
	}
	if syscall.Access(l.path("io/output/x"), 4) != nil {
		t.Error("the file is lost")
	}
}
