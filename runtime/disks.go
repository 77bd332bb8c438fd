package runtime

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// fullBelow is the free space of a disk that counts as full: a program that asks for one large
// piece doesn't get it any more.
const fullBelow = 16 << 20

// fullInterval is how long a disk may be full without anybody's notice.
const fullInterval = 100 * time.Millisecond

// Disks are the file systems that runs fill: that of the data directory, and that of the
// engine where this process sees it. A nil *Disks bounds nothing. It is safe for concurrent
// use.
type Disks struct {
	least int64 // bytes that shall stay free

	mu      sync.Mutex
	paths   []string
	written map[*sandboxDisk]int64 // by those that are watched
	full    time.Time              // when one was full the last time that anybody looked
}

// NewDisks returns the disks of some directories. Below least free bytes nothing new begins; 0
// is no bound.
func NewDisks(least int64, paths ...string) *Disks {
	return &Disks{least: least, paths: paths, written: map[*sandboxDisk]int64{}}
}

// Add adds the disk of another directory. One that can't be looked at counts as endless.
func (d *Disks) Add(path string) {
	if d == nil || path == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.paths, path) {
		d.paths = append(d.paths, path)
	}
}

// Bounded reports whether some room must stay free.
func (d *Disks) Bounded() bool { return d != nil && d.least > 0 }

// Room returns an Unavailable fault where need more bytes would leave less than the bound.
func (d *Disks) Room(need int64) error {
	if !d.Bounded() {
		return nil
	}
	path, free := d.tightest()
	if path == "" || free >= d.least && free-need >= d.least {
		return nil
	}
	return fault.New(fault.Unavailable, "the disk is almost full: %d MiB are free in %s, and %d MiB must stay free",
		free>>20, path, d.least>>20).
		WithHint("make room, for example with `aod prune`, or lower min_free_disk")
}

// FullSince reports whether a disk is full, or was seen full since a time.
func (d *Disks) FullSince(since time.Time) bool {
	if d == nil {
		return false
	}
	d.tightest()
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.full.IsZero() && !d.full.Before(since)
}

// Watch looks at the disks until ctx ends, for FullSince.
func (d *Disks) Watch(ctx context.Context) {
	ticker := time.NewTicker(fullInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		d.tightest()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// tightest returns the directory whose disk has the fewest free bytes; "" where none is known.
func (d *Disks) tightest() (path string, free int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.paths {
		if n, err := FreeBytes(p); err == nil && (path == "" || n < free) {
			path, free = p, n
		}
	}
	if path != "" && free < fullBelow {
		d.full = time.Now()
	}
	return path, free
}

// FreeBytes returns how many bytes a program without privileges may still write to the disk
// of a directory; 0 where the disk has no inode left.
func FreeBytes(dir string) (int64, error) { return freeBytes(dir) }

// DiskFullError is the cause that a run was stopped with, to save the host's disk. It had kept
// its own limit.
type DiskFullError struct{ Free, Written int64 } // bytes

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("the host's disk was almost full (%d MiB free), and of all runs this one had written most "+
		"(%d MiB)", e.Free>>20, e.Written>>20)
}

// tell notes how much a sandbox has written. It returns the reason to stop that sandbox, where
// half of the bound is left and nobody wrote more: whoever wrote little would free little.
func (d *Disks) tell(s *sandboxDisk, written int64) *DiskFullError {
	if d == nil {
		return nil
	}
	path, free := d.tightest()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.written[s] = written
	if path == "" || free >= d.least/2 || written < d.least/16 {
		return nil
	}
	for other, most := range d.written {
		if other != s && most > written {
			return nil
		}
	}
	return &DiskFullError{Free: free, Written: written}
}

// forget ends the part of a sandbox that is watched no longer.
func (d *Disks) forget(s *sandboxDisk) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.written, s)
}
