package safefs

import (
	"testing"

	"golang.org/x/sys/unix"
)

// exchange swaps two names in one step, so that neither is ever missing.
func exchange(t *testing.T, a, b string) {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		t.Error(err)
	}
}
