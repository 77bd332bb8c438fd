//go:build unix

package testkit

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Tower makes directories of one name in one another below dir, however long their path gets, and
// returns the descriptor of the last. It is closed at the test's end.
func Tower(t testing.TB, dir, name string, floors int) (fd int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_DIRECTORY, 0)
	for range floors {
		if err == nil {
			err = unix.Mkdirat(fd, name, 0o755)
		}
		next := -1
		if err == nil {
			next, err = unix.Openat(fd, name, unix.O_DIRECTORY, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		fd = next
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// nobody is a user and group without rights.
const nobody = 65534

// Unprivileged lets a test whose permissions root would not feel run as somebody else, in a process
// of its own. It returns true in the process that shall do the test.
func Unprivileged(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	temp, err := os.MkdirTemp("", "aod-unprivileged-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	if err := os.Chown(temp, nobody, nobody); err != nil {
		t.Skipf("root can't give files away here: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Dir, cmd.Env = temp, append(os.Environ(), "TMPDIR="+temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
	return false
}
