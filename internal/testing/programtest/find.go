package programtest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Find returns where a program of others is: where AOD_TEST_NAME says, as `make test` has it, or in the PATH. Without it
// the test is skipped with the reason, or fails where tests may not be skipped (AOD_TEST_DOCKER=require).
func Find(t testing.TB, name string) string {
	t.Helper()
	variable := "AOD_TEST_" + strings.ToUpper(name)
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("AOD_TEST_DOCKER") == "require" {
		t.Fatalf("AOD_TEST_DOCKER=require, but there is no %s: `make test` unpacks Debian's, or set %s", name, variable)
	}
	if err != nil {
		t.Skipf("no %s to test with: %v", name, err)
	}
	return path
}
