//go:build linux

package line

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/tunnel"
)

// below has measure look at directories of the test.
func below(t *testing.T, except ...string) string {
	t.Helper()
	dir := t.TempDir()
	wasMeasured, wasOurs := measured, ours
	t.Cleanup(func() { measured, ours = wasMeasured, wasOurs })
	measured, ours = []string{dir}, map[string]bool{}
	for _, name := range except {
		ours[dir+"/"+name] = true
	}
	return dir
}

func write(t *testing.T, path string, bytes int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("x", bytes)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestMeasureCountsWhatTheProgramHasWritten(t *testing.T) {
	const large = 1 << 20
	cases := []struct {
		name          string
		except        []string
		make          func(t *testing.T, dir string)
		entries       int64
		atLeast, most int64 // bytes
	}{
		{"nothing", nil, func(*testing.T, string) {}, 0, 0, 0},
		{"a file", nil, func(t *testing.T, dir string) { write(t, dir+"/f", large) }, 1, large, large + large/4},
		{"files in directories", nil, func(t *testing.T, dir string) {
			write(t, dir+"/a/b/f", large)
			write(t, dir+"/a/g", large)
		}, 4, 2 * large, 2*large + large/4},
		{"a sparse file by its blocks", nil, func(t *testing.T, dir string) {
			write(t, dir+"/f", 1)
			if err := os.Truncate(dir+"/f", 1<<40); err != nil {
				t.Fatal(err)
			}
		}, 1, 0, large},
		{"more files than are read at a time", nil, func(t *testing.T, dir string) {
			for i := range 3*portion + 1 {
				write(t, fmt.Sprintf("%s/%d", dir, i), 0)
			}
		}, 3*portion + 1, 0, large},
		{"no link's target", nil, func(t *testing.T, dir string) {
			other := t.TempDir()
			write(t, other+"/f", large)
			for name, target := range map[string]string{"dir": other, "file": other + "/f", "self": ".", "none": "missing"} {
				if err := os.Symlink(target, dir+"/"+name); err != nil {
					t.Fatal(err)
				}
			}
		}, 4, 0, large / 2},
		{"a FIFO without waiting for it", nil, func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(dir+"/fifo", 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1, 0, large / 2},
		{"nothing of ours", []string{"input", "handoff/incoming"}, func(t *testing.T, dir string) {
			write(t, dir+"/input/f", large)
			write(t, dir+"/handoff/incoming/f", large)
			write(t, dir+"/handoff/input/f", 1)
		}, 3, 0, large / 2},
		{"what is nested as deep as may be", nil, func(t *testing.T, dir string) { testkit.Tower(t, dir, "d", maxDepth) }, maxDepth, 0, large},
		{"what no path is long enough for", nil, func(t *testing.T, dir string) {
			last := testkit.Tower(t, dir, strings.Repeat("n", 255), 60)
			write(t, fmt.Sprintf("/proc/self/fd/%d/f", last), large)
		}, 61, large, 2 * large},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := below(t, c.except...)
			c.make(t, dir)
			if got := measure(); got.Entries != c.entries || got.Bytes < c.atLeast || got.Bytes > c.most {
				t.Errorf("%+v, want %d entries and %d to %d bytes", got, c.entries, c.atLeast, c.most)
			}
		})
	}
	t.Run("what is nested deeper as without end", func(t *testing.T) {
		dir := below(t)
		testkit.Tower(t, dir, "d", maxDepth+50)
		if got := measure(); got.Entries < endless {
			t.Errorf("%+v", got)
		}
	})
	t.Run("all the directories together", func(t *testing.T) {
		dir := below(t)
		measured = append(measured, t.TempDir(), dir+"/none")
		write(t, measured[0]+"/f", 1)
		write(t, measured[1]+"/f", 1)
		if got := measure(); got.Entries != 2 {
			t.Errorf("%+v", got)
		}
	})
}

func TestNothingHidesBehindItsOwnPermissions(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	dir := below(t)
	write(t, dir+"/a/b/f", 1)
	for _, closed := range []string{"/a/b", "/a"} {
		if err := os.Chmod(dir+closed, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := measure(); got.Entries != 3 {
		t.Errorf("%+v", got)
	}
}

func TestMeasureLooksWhereTheProgramWrites(t *testing.T) {
	if got := strings.Join(measured, " "); got != "/io /workspace "+filepath.Dir(tunnel.Socket) {
		t.Error(got)
	}
}
