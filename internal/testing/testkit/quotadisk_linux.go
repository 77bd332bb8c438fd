package testkit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// QuotaDisk mounts a file system that keeps project quotas, until the test is over. It skips the test where nobody may
// mount, or none can be made.
func QuotaDisk(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	image := filepath.Join(t.TempDir(), "disk")
	for _, command := range [][]string{
		{"truncate", "-s", "512M", image},
		{"mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota", image},
		{"mount", "-o", "loop,prjquota", image, dir},
	} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no file system with project quotas can be had here: %v, %s", err, out)
		}
	}
	t.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(t.Context()), "umount", "-l", dir).Run() // it may be gone
	})
	for _, way := range []string{filepath.Dir(dir), dir} { // for other users
		if err := os.Chmod(way, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
