// Package runlog keeps what the program of a run writes to stdout and stderr: a file in the run's
// directory, a JSON object a line.
//
//	File.Add   appends an entry
//	File.Seen  counts what an earlier process kept of an attempt
//	Tail       reads lines of a file that may be growing, without those before
//	LastWords  what a run that failed wrote last
//
// It must not know how a run is led, nor who reads.
//
// Its Go API may change with every release: see docs/stability.md.
package runlog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// File is what a run wrote to stdout and stderr, a JSON object a line. It is made with the first
// line.
type File struct {
	path string

	mu     sync.Mutex
	file   *os.File
	lines  int64 // that the file has, while it is open
	failed error // the first error: what comes after it is dropped
}

// New returns the log in a run's directory, which need not exist yet.
func New(runDir string) *File { return &File{path: pathIn(runDir)} }

func pathIn(runDir string) string { return filepath.Join(runDir, layout.Log) }

// Add appends an entry and gives it the next number.
func (l *File) Add(entry api.LogEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil && l.failed == nil {
		l.failed = l.open()
	}
	if l.failed != nil {
		return
	}
	l.lines++
	entry.Line = l.lines
	line, err := json.Marshal(entry)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	l.failed = err
}

// open opens the file, which may have lines already. It is called with the lock held.
func (l *File) open() error {
	var err error
	if l.lines, err = linesIn(l.path); err != nil {
		return err
	}
	l.file, err = safefs.OpenAppend(l.path)
	return err
}

// Err is why the file lacks lines; nil: it has all of them.
func (l *File) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Close closes the file. The next entry opens it again.
func (l *File) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // each line was written when it came
		l.file = nil
	}
}

// Seen counts the lines of an attempt that an earlier process wrote, and cuts off an
// incomplete last line.
func (l *File) Seen(attempt int) run.Lines {
	var seen run.Lines
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return seen // nothing was kept
	}
	defer func() { _ = f.Close() }() // nothing was written
	r := newReader(f)
	for {
		entry, err := r.next()
		if err != nil {
			_ = f.Truncate(r.offset) // else the next line would be lost with it
			return seen
		}
		if entry.Attempt == attempt {
			seen.Count(entry.Stream)
		}
	}
}
