package registry

import "os"

// stat is empty: Windows tells a new value each time.
type stat struct{}

// look returns what differs when a file was changed, and when that was.
func (*stat) look(path string) (all [6]int64, changed int64, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return all, 0, err
	}
	changed = info.ModTime().UnixNano()
	return [6]int64{int64(info.Mode()), info.Size(), changed}, changed, nil
}
