//go:build !linux

package line

import "os"

// Main complains: the far end of a tunnel runs in Linux containers only.
func Main() int {
	_, _ = os.Stderr.WriteString("aod-line: runs in Linux containers only\n") // nothing else could be done
	return 1
}
