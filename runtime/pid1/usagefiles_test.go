//go:build linux

package pid1

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestFilesLeft(t *testing.T) {
	empty, some, many, file := t.TempDir(), t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
	writeFile(t, file, "", 0o644)
	if err := syscall.Mkdir(filepath.Join(some, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(some, ".hidden"), "", 0o644)
	writeFile(t, filepath.Join(some, "dir", "below"), "", 0o644)
	for i := range initreport.MaxFilesLeft + 500 {
		writeFile(t, filepath.Join(many, strings.Repeat("long", 50)+strconv.Itoa(i)), "", 0o644)
	}
	for _, c := range []struct {
		name string
		dirs []string
		want int64
	}{
		{"nothing", []string{empty}, 0},
		{"no directory is nothing", []string{filepath.Join(empty, "missing")}, 0},
		{"a file and a directory, not what is in it", []string{empty, some}, 2},
		{"two places", []string{some, some}, 4},
		{"more than is counted", []string{some, many, many}, initreport.MaxFilesLeft},
		{"no directory but a file", []string{some, file}, initreport.NotCounted},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := filesLeft(c.dirs...); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestWhatIsLeftInASandboxIsCounted(t *testing.T) {
	r := inSandbox(t, "--", "/probe", "write", "/tmp/a", "/dev/shm/b")
	if report := r.report(t); report.FilesLeft != 2 || report.NetAttempts != 0 {
		t.Errorf("%+v", r)
	}
}
