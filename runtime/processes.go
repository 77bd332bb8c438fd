//go:build unix

package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processes are those of a container, as this host's /proc shows them. One goroutine uses it.
type processes struct {
	list    string // the file of their ids
	since   time.Time
	wrote   map[string]int64 // by process id, while that lives
	written int64            // by all that ever lived, as far as they were seen
}

// findProcesses returns the processes of a running container; nil where this process can't see
// them. The engine's process ids may be those of another machine, or of the host around a
// container: the cgroup of a process that is really of this one has the container's id.
func findProcesses(state ContainerState, container string) *processes {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", state.PID))
	if err != nil || state.PID <= 0 || container == "" {
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || !strings.Contains(parts[2], container) {
			continue
		}
		list := filepath.Join("/sys/fs/cgroup", parts[1], parts[2], "cgroup.procs") // of version 2 the middle is empty
		if _, err := os.Stat(list); err == nil {
			return &processes{list: list, since: state.StartedAt, wrote: map[string]int64{}}
		}
	}
	return nil
}

// inode tells a file from all others.
type inode struct{ dev, ino uint64 }

// storage is what kind of file system has a file.
type storage int

const (
	storageUnknown storage = iota
	storageMemory
	storageFUSE
	storageDisk
)

// held returns the deleted regular files that the processes keep, with the bytes of their
// blocks: files that are open, and those that are mapped, where this process may look.
func (p *processes) held(ctx context.Context, counts func(path string, stat *syscall.Stat_t) bool) map[inode]int64 {
	if p == nil {
		return nil
	}
	found := map[inode]int64{}
	for _, pid := range p.pids() {
		for _, dir := range []string{"fd", "map_files"} {
			eachName(ctx, filepath.Join("/proc", pid, dir), func(path string) {
				var stat syscall.Stat_t
				if syscall.Stat(path, &stat) == nil && p.changed(&stat) && counts(path, &stat) {
					found[inode{device(&stat), stat.Ino}] = stat.Blocks * 512
				}
			})
		}
	}
	return found
}

// changed reports whether a regular file was changed since the container began: one of the
// image has taken no room.
func (p *processes) changed(stat *syscall.Stat_t) bool {
	changed := changedAt(stat)
	return stat.Mode&syscall.S_IFMT == syscall.S_IFREG && !changed.Before(p.since.Truncate(time.Second))
}

// pids returns the ids of the processes.
func (p *processes) pids() []string {
	raw, err := os.ReadFile(p.list)
	if err != nil {
		return nil // the container has ended
	}
	return strings.Fields(string(raw))
}

// bytesWritten returns how many bytes of files the processes have made dirty, also those
// without a name. What is written twice counts twice: it tells who writes, not who has too much.
func (p *processes) bytesWritten() int64 {
	if p == nil {
		return 0
	}
	alive := map[string]int64{}
	for _, pid := range p.pids() {
		n := writtenBy(pid)
		alive[pid] = n
		p.written += max(n-p.wrote[pid], 0)
	}
	p.wrote = alive
	return p.written
}

func writtenBy(pid string) int64 {
	raw, err := os.ReadFile(filepath.Join("/proc", pid, "io"))
	if err != nil {
		return 0 // it has ended, or isn't ours to look at
	}
	for line := range strings.Lines(string(raw)) {
		if value, is := strings.CutPrefix(line, "write_bytes:"); is {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64) // the kernel's
			return n
		}
	}
	return 0
}

// eachName calls do with the path of each entry of a directory that may have very many.
func eachName(ctx context.Context, dir string, do func(path string)) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // read only
	for ctx.Err() == nil {
		names, err := f.Readdirnames(1000)
		for _, name := range names {
			do(filepath.Join(dir, name))
		}
		if err != nil || len(names) == 0 {
			return // io.EOF, or the process has ended
		}
	}
}

// heldOn returns the deleted files that lie on the disk of a directory.
func (p *processes) heldOn(ctx context.Context, dir string) map[inode]int64 {
	return p.held(ctx, onDisk(dir))
}

// heldElsewhere returns the deleted files on any other disk, and leaves out those in memory.
func (p *processes) heldElsewhere(ctx context.Context, dir string) map[inode]int64 {
	var home syscall.Stat_t
	_ = syscall.Stat(dir, &home) // else it is being removed
	return p.held(ctx, func(path string, stat *syscall.Stat_t) bool {
		if stat.Dev == home.Dev {
			return false
		}
		switch storageAt(path) {
		case storageDisk:
			return stat.Nlink == 0
		case storageFUSE:
			return stat.Nlink == 0 || knownDeleted(path)
		}
		return false
	})
}

// knownDeleted reports whether the kernel knows that a file was deleted. fuse-overlayfs keeps a
// name of its own for one that is open, and tells of one link.
func knownDeleted(path string) bool {
	target, err := os.Readlink(path)
	return err == nil && strings.HasSuffix(target, " (deleted)")
}

func onDisk(dir string) func(string, *syscall.Stat_t) bool {
	var home syscall.Stat_t
	err := syscall.Stat(dir, &home)
	return func(_ string, stat *syscall.Stat_t) bool {
		return err == nil && stat.Dev == home.Dev && stat.Nlink == 0
	}
}

// fileOf returns the file of what fs.FileInfo.Sys returns.
func fileOf(sys any) inode {
	if stat, ok := sys.(*syscall.Stat_t); ok {
		return inode{device(stat), stat.Ino}
	}
	return inode{}
}
