package runtime

import (
	"os"
	"syscall"
	"time"
)

// device returns the number of the disk on which a file lies.
func device(stat *syscall.Stat_t) uint64 { return uint64(stat.Dev) }

// changedAt returns when a file, or what is known of it, was changed last.
func changedAt(stat *syscall.Stat_t) time.Time { return time.Unix(stat.Ctimespec.Unix()) }

// storageAt knows nothing: the processes of sandboxes are in a Linux of their own.
func storageAt(string) storage { return storageUnknown }

// makeFIFO leaves the pipe out: it has no data, and macOS has no safe way to make one here.
func makeFIFO(*os.File, string) error { return nil }
