package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/safefs"
)

const (
	watchInterval = 500 * time.Millisecond
	// watchEntries bounds how many files a run may have at any time: each costs an inode of
	// the host, however small it is.
	watchEntries = 50_000
)

// watchDisk ends the run with a *LimitError as soon as it has written more than limit bytes
// to the host's disk: a bind mount has no quota. It returns when ctx ends.
func (l Layout) watchDisk(ctx context.Context, limit int64, end context.CancelCauseFunc) {
	if l.remote != nil {
		l.remote.watchDisk(ctx, limit, end)
		return
	}
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if over := l.overDisk(ctx, limit); over != nil {
			end(over)
			return
		}
	}
}

// overDisk measures the directories that the program can write to. The program may go on
// writing meanwhile.
func (l Layout) overDisk(ctx context.Context, limit int64) *LimitError {
	root, err := os.OpenRoot(l.Dir)
	if err != nil {
		return nil // it is being removed
	}
	defer func() { _ = root.Close() }() // read only
	m := meter{root: root, limit: limit}
	for _, file := range []string{"aod/report", "aod/" + stdoutName} {
		if info, err := root.Lstat(file); err == nil {
			m.used += blocks(info)
		}
	}
	for _, dir := range []string{"io", "outgoing", "workspace"} {
		if over := m.dir(ctx, dir, 0); over != nil {
			return over
		}
	}
	return nil
}

// meter adds up the sizes of a tree that changes meanwhile. It leaves out what it can't read:
// that has vanished, or will count the next time.
type meter struct {
	root    *os.Root
	limit   int64
	used    int64 // bytes of blocks, not of lengths: the holes of a sparse file don't count
	entries int64
}

func (m *meter) dir(ctx context.Context, name string, depth int) (over *LimitError) {
	if depth > safefs.MaxDepth {
		return &LimitError{Limit: "output", Message: fmt.Sprintf("made directories more than %d deep in /io and /workspace", safefs.MaxDepth)}
	}
	err := m.read(ctx, name, depth)
	if errors.Is(err, fs.ErrPermission) && m.root.Chmod(name, 0o700) == nil {
		err = m.read(ctx, name, depth) // closed permissions hide nothing
	}
	if errors.As(err, &over) {
		return over
	}
	return nil
}

func (m *meter) read(ctx context.Context, name string, depth int) error {
	return safefs.EachEntry(m.root, name, func(entry fs.DirEntry) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if over := m.entry(ctx, path.Join(name, entry.Name()), entry, depth); over != nil {
			return over
		}
		return nil
	})
}

func (m *meter) entry(ctx context.Context, name string, entry fs.DirEntry, depth int) *LimitError {
	if name == "io/input" {
		return nil // written by us
	}
	m.entries++
	if info, err := entry.Info(); err == nil {
		m.used += blocks(info)
	}
	switch {
	case m.used > m.limit:
		return overBytes(m.limit)
	case m.entries > watchEntries:
		return overEntries()
	case entry.IsDir():
		return m.dir(ctx, name, depth+1)
	}
	return nil
}

func blocks(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Blocks * 512 // POSIX: st_blocks counts units of 512 bytes
	}
	return info.Size()
}

func overBytes(limit int64) *LimitError {
	return &LimitError{
		Limit:   "output",
		Message: fmt.Sprintf("wrote more than %d bytes to /io and /workspace", limit),
		Hint:    "raise limits.output in agent.yaml if that is meant: twice as much may be written while running",
	}
}

func overEntries() *LimitError {
	return &LimitError{Limit: "output", Message: fmt.Sprintf("made more than %d files in /io and /workspace", watchEntries)}
}
