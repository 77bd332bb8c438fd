package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

func TestALayoutIsOpenInsideAndClosedOutsideWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o027, 0o077} {
		t.Run(fmt.Sprintf("%03o", umask), func(t *testing.T) {
			old := syscall.Umask(umask)
			defer syscall.Umask(old)
			l := newLayout(t)
			if err := l.WriteInput([]byte("{}")); err != nil {
				t.Fatal(err)
			}
			want := map[string]fs.FileMode{
				".": 0o700, "io": 0o777, "io/input": 0o777, "io/output": 0o777, "workspace": 0o777,
				"io/handoff": 0o777, "io/handoff/outgoing": 0o777, "io/handoff/incoming": 0o777,
				"outgoing": 0o777, "incoming": 0o777,
				"io/input.json": 0o666,
				"aod":           0o755, "aod/report": 0o666, "aod/hosts": 0o644,
			}
			got := map[string]fs.FileMode{}
			for name := range want {
				got[name] = mode(t, l.path(name)).Perm()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheInitIsLinkedOrCopied(t *testing.T) {
	l := newLayout(t)
	installed := filepath.Join(filepath.Dir(l.Dir), "init")
	a, errA := os.Stat(installed)
	b, errB := os.Stat(l.path("aod/init"))
	if err := errors.Join(errA, errB); err != nil || !os.SameFile(a, b) {
		t.Errorf("it isn't a link: %v", err)
	}
	t.Run("copied from another file system", func(t *testing.T) {
		other := otherFileSystem(t)
		initFile := filepath.Join(other, "init")
		write(t, initFile, "the init")
		l, err := NewLayout(t.TempDir(), initFile)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, l.path("aod/init")); got != "the init" || mode(t, l.path("aod/init")).Perm() != 0o555 {
			t.Errorf("%q with mode %v", got, mode(t, l.path("aod/init")))
		}
	})
}

// otherFileSystem returns a directory that a temporary one can't be renamed to.
func otherFileSystem(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "aod-test-")
	if err != nil {
		t.Skipf("there is no second file system: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	here := filepath.Join(t.TempDir(), "x")
	write(t, here, "")
	if err := os.Rename(here, filepath.Join(dir, "x")); !errors.Is(err, syscall.EXDEV) {
		t.Skip("the temporary directory and /dev/shm lie on one file system")
	}
	return dir
}

func TestALayoutThatCannotBeMadeIsTheHostsFault(t *testing.T) {
	taken := newLayout(t)
	cases := []struct{ name, dir, initFile string }{
		{"the directory is missing", filepath.Join(t.TempDir(), "missing"), "/bin/sh"},
		{"the directory holds a run already", taken.Dir, "/bin/sh"},
		{"the init is missing", t.TempDir(), filepath.Join(t.TempDir(), "missing")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := NewLayout(c.dir, c.initFile); !fault.Is(err, fault.Unavailable) || fault.Public(err).Hint == "" {
				t.Error(err)
			}
		})
	}
}

func TestInputFilesMayLieElsewhere(t *testing.T) {
	made, input := newLayout(t), t.TempDir()
	write(t, filepath.Join(input, "a/b"), "x")
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := NewLayoutWith(dir, filepath.Join(made.Dir, "../init"), input)
	if err != nil {
		t.Fatal(err)
	}
	root, err := l.InputRoot()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := root.Stat("a/b"); err != nil {
		t.Error(err)
	}
	if got := mode(t, l.path("io/input")); !got.IsDir() {
		t.Error("there is no place to mount it")
	}
	want := Mount{Source: input, Target: inputDir, ReadOnly: true}
	if mounts := (binds{l, Spec{Network: "none"}}).all(nil); !slices.Contains(mounts, want) {
		t.Errorf("mounts %+v", mounts)
	}
	if opened := OpenLayout(dir, input); opened != l {
		t.Errorf("opened again it is %+v", opened)
	}
}

func TestAReportIsReadAndNeverBelieved(t *testing.T) {
	good := initreport.Report{Version: initreport.Version, ExitCode: 3, CPUSeconds: 0.5, Source: initreport.Cgroup1}
	put := func(content []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) { write(t, path, string(content)) }
	}
	foreign, err := json.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name    string
		put     func(t *testing.T, path string)
		refused bool
	}{
		{"the init's own", put(good.Append(nil)), false},
		{"none at all", func(*testing.T, string) {}, true},
		{"empty, as it was made", put(nil), true},
		{"in another hand", put(append(foreign, '\n')), true},
		{"with numbers that can't be", put(initreport.Report{Version: 1, OOMKills: -1, Source: initreport.Rusage}.Append(nil)), true},
		{"a giant", put(make([]byte, initreport.MaxBytes+1)), true},
		{"a sparse giant", func(t *testing.T, path string) {
			put(nil)(t, path)
			if err := os.Truncate(path, 1<<40); err != nil {
				t.Skip(err)
			}
		}, true},
		{"a link", func(t *testing.T, path string) {
			put(good.Append(nil))(t, path+"2")
			link(t, "report2", path)
		}, true},
		{"a FIFO", fifo, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLayout(t)
			if err := os.Remove(l.path("aod/report")); err != nil {
				t.Fatal(err)
			}
			c.put(t, l.path("aod/report"))
			if got, err := l.Report(); (err != nil) != c.refused || err == nil && got != good {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
