//go:build unix

package testkit

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

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
