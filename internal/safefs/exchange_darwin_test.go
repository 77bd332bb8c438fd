package safefs

import (
	"testing"

	"golang.org/x/sys/unix"
)

// exchange swaps two names in one step, so that neither is ever missing.
func exchange(t *testing.T, a, b string) {
	if err := unix.RenamexNp(a, b, unix.RENAME_SWAP); err != nil {
		t.Error(err)
	}
}
