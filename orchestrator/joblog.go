package orchestrator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/safefs"
)

const (
	// maxLogLine is more than a line of the file takes: the text is cut at 16 KiB
	// by the runtime, and JSON writes no byte with more than six.
	maxLogLine = 128 << 10
)

// logFile is what a run wrote to stdout and stderr, a JSON object a line. It is made with
// the first line.
type logFile struct {
	path string

	mu     sync.Mutex
	file   *os.File
	failed error // the first error: what comes after it is dropped
}

func newLogFile(runDir string) *logFile { return &logFile{path: filepath.Join(runDir, layout.Log)} }

func (l *logFile) add(entry api.LogEntry) {
	line, err := json.Marshal(entry)
	if err != nil {
		return // a LogEntry can't fail
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return
	}
	if l.file == nil {
		l.file, l.failed = safefs.OpenAppend(l.path)
	}
	if l.failed == nil {
		_, l.failed = l.file.Write(append(line, '\n'))
	}
}

// err is why the file lacks lines; nil: it has all of them.
func (l *logFile) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // each line was written when it came
		l.file = nil
	}
}

// seen counts the lines of an attempt that an earlier process wrote, and cuts off an
// incomplete last line.
func (l *logFile) seen(attempt int) run.Lines {
	var seen run.Lines
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return seen // nothing was kept
	}
	defer func() { _ = f.Close() }() // nothing was written
	r := newLogReader(f)
	for {
		entry, err := r.next()
		if err != nil {
			_ = f.Truncate(r.offset) // else the next line would be lost with it
			return seen
		}
		switch {
		case entry.Attempt != attempt:
		case entry.Stream == "stdout":
			seen.Stdout++
		default:
			seen.Stderr++
		}
	}
}

// logReader reads whole lines of a file that may be growing.
type logReader struct {
	r      *bufio.Reader
	part   []byte // of a line that isn't whole yet
	offset int64  // behind the last whole line
}

func newLogReader(r io.Reader) *logReader {
	return &logReader{r: bufio.NewReader(r)}
}

var errBadLog = errors.New("the log's file is damaged")

// next returns the next entry, or io.EOF when there is no whole line yet.
func (l *logReader) next() (api.LogEntry, error) {
	var entry api.LogEntry
	line, err := l.r.ReadBytes('\n')
	l.part = append(l.part, line...)
	if err != nil {
		return entry, err
	}
	line, l.part = l.part, nil
	if len(line) > maxLogLine || json.Unmarshal(bytes.TrimSpace(line), &entry) != nil {
		return entry, errBadLog
	}
	l.offset += int64(len(line))
	return entry, nil
}
