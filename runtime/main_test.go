package runtime

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// unprivilegedOnly lets a test whose permissions root would not feel run as somebody
// else. It returns true in the process that shall do the test.
func unprivilegedOnly(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	temp, err := os.MkdirTemp("", "aod-unprivileged-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	if err := os.Chown(temp, unprivileged, unprivileged); err != nil {
		t.Skipf("root can't give files away here: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Dir, cmd.Env = temp, append(os.Environ(), "TMPDIR="+temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as user %d: %v\n%s", unprivileged, err, out)
	}
	return false
}

// newLayout makes a layout with an init file beside it.
func newLayout(t *testing.T) Layout {
	t.Helper()
	parent := t.TempDir()
	initFile := filepath.Join(parent, "init")
	write(t, initFile, "the init")
	dir := filepath.Join(parent, "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := NewLayout(dir, initFile)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func fifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

// tower makes directories named "d" in one another below dir.
func tower(t *testing.T, dir string, floors int) {
	t.Helper()
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	for range floors {
		if err == nil {
			err = unix.Mkdirat(fd, "d", 0o755)
		}
		next := -1
		if err == nil {
			next, err = unix.Openat(fd, "d", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Close(fd)
		fd = next
	}
	_ = syscall.Close(fd)
}

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
