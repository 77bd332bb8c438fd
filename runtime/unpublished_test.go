package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

func TestWhatCannotBePublished(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(t *testing.T, l Layout, dest string)
	}{
		{"the destination is there", func(t *testing.T, _ Layout, dest string) {
			if err := os.Mkdir(dest, 0o755); err != nil {
				t.Fatal(err)
			}
		}},
		{"a link stands in its place", func(t *testing.T, _ Layout, dest string) { link(t, "missing", dest) }},
		{"its parent is missing", func(t *testing.T, _ Layout, dest string) {
			if err := os.Remove(filepath.Dir(dest)); err != nil {
				t.Fatal(err)
			}
		}},
		{"a link stands in the place of /io/output", func(t *testing.T, l Layout, _ string) {
			if err := os.Rename(l.path("io/output"), l.path("io/elsewhere")); err != nil {
				t.Fatal(err)
			}
			link(t, "elsewhere", l.path("io/output"))
		}},
		{"/io/output is gone", func(t *testing.T, l Layout, _ string) {
			if err := safefs.RemoveTree(l.path("io/output")); err != nil {
				t.Fatal(err)
			}
		}},
		{"a file is gone", func(t *testing.T, l Layout, _ string) {
			if err := os.Remove(l.path("io/output/d/x")); err != nil {
				t.Fatal(err)
			}
		}},
		{"a file became a link", func(t *testing.T, l Layout, _ string) {
			swapFile(t, l.path("io/output/d/x"), func(path string) { link(t, l.path("io/secret"), path) })
		}},
		{"a file became a directory", func(t *testing.T, l Layout, _ string) {
			swapFile(t, l.path("io/output/d/x"), func(path string) { write(t, path+"/y", "") })
		}},
		{"a directory became a link to its neighbour", func(t *testing.T, l Layout, _ string) {
			swapFile(t, l.path("io/output/d/x"), func(path string) { replaceDir(t, filepath.Dir(path), "e") })
		}},
		{"a directory became a link out of there", func(t *testing.T, l Layout, _ string) {
			write(t, l.path("io/other/x"), "secret")
			swapFile(t, l.path("io/output/d/x"), func(path string) { replaceDir(t, filepath.Dir(path), l.path("io/other")) })
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l, dest := newLayout(t), filepath.Join(t.TempDir(), "results", "r1")
			if err := os.Mkdir(filepath.Dir(dest), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, l.path("io/secret"), "secret")
			if err := os.Chmod(l.path("io/secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			write(t, l.path("io/output/d/x"), "x")
			write(t, l.path("io/output/e/x"), "y")
			found := collected(t, l)
			c.spoil(t, l, dest)
			before := tree(t, filepath.Dir(filepath.Dir(dest)))
			if files, err := l.Publish(found, dest); !fault.Is(err, fault.Unavailable) || files != nil {
				t.Errorf("%+v, %v", files, err)
			} else if fault.Public(err).Hint == "" || strings.Contains(fault.Public(err).Msg, "d/x") {
				t.Errorf("%+v", fault.Public(err))
			}
			if diff := cmp.Diff(before, tree(t, filepath.Dir(filepath.Dir(dest)))); diff != "" {
				t.Errorf("something was made there: %s", diff)
			}
			if read(t, l.path("io/secret")) != "secret" || mode(t, l.path("io/secret")) != 0o600 {
				t.Error("a file outside was touched")
			}
		})
	}
	t.Run("names that lead out of there", func(t *testing.T) {
		for _, name := range []string{"../secret", "/etc/passwd", "..", ".", "a/../../secret", ""} {
			l, dest := newLayout(t), filepath.Join(t.TempDir(), "result")
			write(t, l.path("io/secret"), "secret")
			if files, err := l.Publish([]Found{{Name: name}}, dest); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%q: %+v, %v", name, files, err)
			}
		}
	})
}

func swapFile(t *testing.T, path string, put func(path string)) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	put(path)
}
