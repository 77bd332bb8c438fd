//go:build unix

package registry

import "golang.org/x/sys/unix"

// stat is what the kernel says of a file. It is used again for each file: there are many.
type stat unix.Stat_t

// look returns all of a file that differs when it was changed, and when that was.
func (s *stat) look(path string) (all [6]int64, changed int64, err error) {
	if err := unix.Lstat(path, (*unix.Stat_t)(s)); err != nil {
		return all, 0, err
	}
	changed = s.Ctim.Nano()
	//nolint:gosec,unconvert // only differences count; the fields' types differ between systems
	return [6]int64{int64(s.Mode), int64(s.Size), s.Mtim.Nano(), changed, int64(s.Ino), int64(s.Dev)}, changed, nil
}
