package runtime

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// socket leaves a socket at a path that may be longer than an address can be.
func socket(t *testing.T, path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	if err := os.Rename(filepath.Join(dir, "s"), path); err != nil {
		t.Fatal(err)
	}
}

// hostileTrees are what a program may leave in /io/output: the regular files that are
// found, and what is said of the rest.
var hostileTrees = []struct {
	name    string
	make    func(t *testing.T, out string)
	found   []Found
	skipped []string
}{
	{"nothing", func(*testing.T, string) {}, nil, nil},
	{
		"files in order, with their sizes", func(t *testing.T, out string) {
			write(t, out+"/b/z", "123")
			write(t, out+"/b.txt", "12")
			write(t, out+"/a", "")
		},
		[]Found{{"a", 0}, {"b.txt", 2}, {"b/z", 3}},
		nil,
	},
	{
		"links, to a file, a directory, outside, nowhere and in a circle", func(t *testing.T, out string) {
			write(t, out+"/real", "x")
			for name, target := range map[string]string{"l1": "real", "l2": ".", "l3": "/etc", "l4": "missing", "l5": "l5"} {
				link(t, target, filepath.Join(out, name))
			}
		},
		[]Found{{"real", 1}},
		[]string{`"l1" is a symbolic link`, `"l2" is a symbolic link`, `"l3" is a symbolic link`, `"l4" is a symbolic link`, `"l5" is a symbolic link`},
	},
	{
		"a FIFO and a socket", func(t *testing.T, out string) {
			fifo(t, out+"/fifo")
			socket(t, out+"/socket")
		},
		nil,
		[]string{`"fifo" is a FIFO`, `"socket" is a socket`},
	},
	{
		"names that no contract and no terminal can bear", func(t *testing.T, out string) {
			for _, name := range []string{"new\nline", "esc\x1b[2J", "del\x7f", "bad\xff", "quote\"d ü\u00a0", "c1\u0085"} {
				write(t, filepath.Join(out, name), "x")
			}
			write(t, out+"/dir\t/inside", "x")
		},
		[]Found{{"quote\"d ü\u00a0", 1}},
		[]string{
			`"bad\xff" has a name that is not UTF-8`, `"c1\u0085" has a control character in its name`, `"del\x7f" has a control character in its name`,
			`"dir\t" has a control character in its name`, `"esc\x1b[2J" has a control character in its name`, `"new\nline" has a control character in its name`,
		},
	},
	{
		"a path too long to be used", func(t *testing.T, out string) {
			write(t, filepath.Join(out, long, long, long, long, "x"), "x")
			write(t, filepath.Join(out, long, "x"), "x")
		},
		[]Found{{long + "/x", 1}},
		[]string{fmt.Sprintf("%q has a name of more than 1024 bytes", long[:200]+"…")},
	},
	{
		"hard links, once each", func(t *testing.T, out string) {
			write(t, out+"/a", "x")
			if err := os.Link(out+"/a", out+"/b"); err != nil {
				t.Fatal(err)
			}
		},
		[]Found{{"a", 1}, {"b", 1}},
		nil,
	},
}

var long = strings.Repeat("n", 255)

func TestCollectFindsRegularFilesAndNamesTheRest(t *testing.T) {
	for _, c := range hostileTrees {
		t.Run(c.name, func(t *testing.T) {
			l := newLayout(t)
			c.make(t, l.path("io/output"))
			got, err := l.Collect(DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.found, got.Files); diff != "" {
				t.Error(diff)
			}
			slices.Sort(got.Skipped)
			if diff := cmp.Diff(c.skipped, got.Skipped); diff != "" || got.Extra != 0 {
				t.Errorf("%d extra\n%s", got.Extra, diff)
			}
		})
	}
}

func TestOnlyTheFirstSkippedFilesAreNamed(t *testing.T) {
	l := newLayout(t)
	for i := range maxSkipped + 5 {
		link(t, "x", l.path(fmt.Sprintf("io/output/%d", i)))
	}
	got, err := l.Collect(DefaultLimits())
	if err != nil || len(got.Skipped) != maxSkipped || got.Extra != 5 {
		t.Errorf("%d named, %d more, %v", len(got.Skipped), got.Extra, err)
	}
}

func TestCollectKeepsToLimits(t *testing.T) {
	const batch = 256 // entries that safefs reads in one go
	limits := Limits{OutputBytes: 1000, OutputFiles: 2 * batch}
	many := func(n int) func(*testing.T, string) {
		return func(t *testing.T, out string) {
			for i := range n {
				write(t, fmt.Sprintf("%s/%d", out, i), "")
			}
		}
	}
	cases := []struct {
		name string
		make func(t *testing.T, out string)
		says string // "" where it is within them
	}{
		{"as many files as may be", many(2 * batch), ""},
		{"one file too many", many(2*batch + 1), "more than 512 files and directories"},
		{"links count as well", func(t *testing.T, out string) {
			many(2*batch)(t, out)
			link(t, "x", out+"/link")
		}, "more than 512 files and directories"},
		{"as many bytes as may be", func(t *testing.T, out string) { write(t, out+"/x", strings.Repeat("x", 1000)) }, ""},
		{"one byte too many, in two files", func(t *testing.T, out string) {
			write(t, out+"/x", strings.Repeat("x", 999))
			write(t, out+"/d/x", "xx")
		}, "more than 1000 bytes together"},
		{"a sparse giant", func(t *testing.T, out string) {
			write(t, out+"/x", "")
			if err := os.Truncate(out+"/x", 1<<40); err != nil {
				t.Skip(err)
			}
		}, "more than 1000 bytes together"},
		{"as deep as may be", func(t *testing.T, out string) { testkit.Tower(t, out, "d", maxDirDepth) }, ""},
		{"too deep", func(t *testing.T, out string) { testkit.Tower(t, out, "d", maxDirDepth+1) }, "nested more than 32 directories deep"},
		{"no directory", func(t *testing.T, out string) { replace(t, out, func() error { return nil }) }, "was removed by the program"},
		{"a link in its place", func(t *testing.T, out string) { replace(t, out, func() error { return os.Symlink("/etc", out) }) }, "is a symbolic link, not a directory"},
		{"a file in its place", func(t *testing.T, out string) { replace(t, out, func() error { return os.WriteFile(out, nil, 0o600) }) }, "is a regular file, not a directory"},
		{"a FIFO in its place", func(t *testing.T, out string) { replace(t, out, func() error { return syscall.Mkfifo(out, 0o600) }) }, "is a FIFO, not a directory"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLayout(t)
			c.make(t, l.path("io/output"))
			_, err := l.Collect(limits)
			var over *LimitError
			switch {
			case c.says == "" && err != nil:
				t.Error(err)
			case c.says != "" && (!errors.As(err, &over) || over.Limit != "output" || !strings.Contains(over.Message, c.says)):
				t.Errorf("error %v", err)
			}
		})
	}
}

func replace(t *testing.T, dir string, by func() error) {
	t.Helper()
	if err := errors.Join(os.Remove(dir), by()); err != nil {
		t.Fatal(err)
	}
}

func TestReadResult(t *testing.T) {
	cases := []struct {
		name string
		make func(t *testing.T, path string)
		says string // "" where it is read
	}{
		{"as long as may be", func(t *testing.T, path string) { write(t, path, "0123456789") }, ""},
		{"empty", func(t *testing.T, path string) { write(t, path, "") }, ""},
		{"a byte too long", func(t *testing.T, path string) { write(t, path, "0123456789x") }, "has 11 bytes, the limit is 10"},
		{"missing", func(*testing.T, string) {}, "was not written"},
		{"a link beside it", func(t *testing.T, path string) {
			write(t, path+"2", "{}")
			link(t, "output.json2", path)
		}, "is a symbolic link"},
		{"a link to a device", func(t *testing.T, path string) { link(t, "/dev/zero", path) }, "is a symbolic link"},
		{"a FIFO", fifo, "is a FIFO"},
		{"a socket", socket, "is a socket"},
		{"a directory", func(t *testing.T, path string) { write(t, path+"/x", "") }, "is a directory"},
		{"a sparse giant", func(t *testing.T, path string) {
			write(t, path, "")
			if err := os.Truncate(path, 1<<40); err != nil {
				t.Skip(err)
			}
		}, "has 1099511627776 bytes, the limit is 10"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLayout(t)
			c.make(t, l.path("io/output.json"))
			raw, finding, err := l.ReadResult(10)
			switch {
			case err != nil || (finding == nil) != (c.says == ""):
				t.Errorf("%q, %v, %v", raw, finding, err)
			case finding != nil && (!strings.Contains(finding.Message, c.says) || finding.Hint == "" || finding.File != "/io/output.json"):
				t.Errorf("finding %+v", finding)
			case finding == nil && string(raw) != read(t, l.path("io/output.json")):
				t.Errorf("read %q", raw)
			}
		})
	}
}
