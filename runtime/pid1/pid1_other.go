//go:build !linux

package pid1

import "os"

// Main complains: an init runs in Linux containers only.
func Main([]string) int {
	_, _ = os.Stderr.WriteString("aod-init: runs in Linux containers only\n") // nothing else could be done
	return 125
}
