package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/agent-on-demand/aod/internal/safefs"
)

// watchEntries bounds how many files a run may have at any time: each costs an inode of the
// host, however small it is.
const watchEntries = 50_000

// over measures the directories that the program can write to. The program may go on writing meanwhile.
func (m *meter) over(ctx context.Context) *LimitError {
	_, over := m.measure(ctx)
	return over
}

// measure adds up what a program has written to its directories, with the deleted files that
// it holds: they were found before, so that none counts twice.
func (m *meter) measure(ctx context.Context) (used int64, over *LimitError) {
	root, err := os.OpenRoot(m.layout.Dir)
	if err != nil {
		return 0, nil // it is being removed
	}
	defer func() { _ = root.Close() }() // read only
	m.root, m.used = root, sum(m.held)
	if m.used > m.limit {
		return m.used, overBytes(m.limit)
	}
	for _, file := range []string{"aod/report", "aod/" + stdoutName} {
		if info, err := root.Lstat(file); err == nil {
			m.used += blocks(info)
		}
	}
	for _, dir := range []string{"io", "outgoing", "workspace"} {
		if over := m.dir(ctx, dir, 0); over != nil {
			return m.used, over
		}
	}
	for _, dir := range []string{m.layout.Home, m.layout.Kept} {
		if over := m.beside(ctx, dir); over != nil {
			return m.used, over
		}
	}
	return m.used, nil
}

// beside adds a directory that a session has beside those of every sandbox; "" is none.
func (m *meter) beside(ctx context.Context, dir string) *LimitError {
	if dir == "" {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil // it is being removed
	}
	defer func() { _ = root.Close() }() // read only
	m.root = root
	return m.dir(ctx, ".", 0)
}

func sum(held map[inode]int64) (bytes int64) {
	for _, n := range held {
		bytes += n
	}
	return bytes
}

// meter adds up the sizes of a tree that changes meanwhile. It leaves out what it can't read:
// that has vanished, or will count the next time.
type meter struct {
	layout  Layout
	root    *os.Root
	limit   int64
	held    map[inode]int64 // counted already; one may have got a name meanwhile
	used    int64           // bytes of blocks, not of lengths: the holes of a sparse file don't count
	entries int64
}

func (m *meter) dir(ctx context.Context, name string, depth int) (over *LimitError) {
	if depth > safefs.MaxDepth {
		return &LimitError{
			Limit:   "output",
			Message: fmt.Sprintf("made directories more than %d deep in /io and /workspace", safefs.MaxDepth),
		}
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
	if info, err := entry.Info(); err == nil && !m.counted(info) {
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

func (m *meter) counted(info fs.FileInfo) bool {
	if len(m.held) == 0 {
		return false
	}
	_, counted := m.held[fileOf(info.Sys())]
	return counted
}

func overBytes(limit int64) *LimitError {
	return &LimitError{
		Limit:   "output",
		Message: fmt.Sprintf("wrote more than %d bytes to /io and /workspace", limit),
		Hint:    "raise limits.output in agent.yaml if that is meant: twice as much may be written while running",
	}
}

func overLayer(limit int64) *LimitError {
	return &LimitError{
		Limit:   "output",
		Message: fmt.Sprintf("wrote more than %d bytes to the image's file system", limit),
		Hint:    "raise limits.output in agent.yaml if that is meant, or write to /workspace, which is faster",
	}
}

func overEntries() *LimitError {
	return &LimitError{
		Limit:   "output",
		Message: fmt.Sprintf("made more than %d files in /io and /workspace", watchEntries),
	}
}
