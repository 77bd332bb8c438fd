package worker

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// lines are what a program wrote, in a file until the server has them.
type lines struct {
	mu     sync.Mutex
	file   *os.File
	seen   run.Lines // that the file has
	sent   int64     // how many of them the server has
	offset int64     // where in the file the next one begins
	failed error     // the first error: what comes after it is lost
}

// openLines opens the file, and counts what an earlier process wrote. An incomplete last line is cut off.
func openLines(path string) (*lines, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, run.StorageFault(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, run.StorageFault(err)
	}
	l := &lines{file: file}
	end := int64(0)
	for reader := bufio.NewReader(file); ; {
		raw, err := reader.ReadBytes('\n')
		var line wire.Line
		if err != nil || json.Unmarshal(raw, &line) != nil {
			break
		}
		l.seen.Count(line.Stream)
		end += int64(len(raw))
	}
	_, seeked := file.Seek(end, io.SeekStart)
	if err := errors.Join(file.Truncate(end), seeked); err != nil {
		return nil, errors.Join(run.StorageFault(err), file.Close())
	}
	return l, nil
}

// add appends a line.
func (l *lines) add(line runtime.LogLine) {
	raw, err := json.Marshal(wire.Line{Time: line.Time, Stream: line.Stream, Text: line.Text, Cut: line.Cut})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return
	}
	if err == nil {
		_, err = l.file.Write(append(raw, '\n'))
	}
	if l.failed = err; err == nil {
		l.seen.Count(line.Stream)
	}
}

// counts returns how many lines there are.
func (l *lines) counts() run.Lines {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// told returns how many lines the server has.
func (l *lines) told() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// next returns the lines that the server doesn't have, up to about wire.MaxLines bytes of them, and the number of the
// first.
func (l *lines) next() (first int64, some []wire.Line, after int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, after = l.sent, l.offset
	reader := bufio.NewReader(io.NewSectionReader(l.file, l.offset, 1<<62))
	for after-l.offset < wire.MaxLines {
		raw, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		var line wire.Line
		if err = errors.Join(err, json.Unmarshal(raw, &line)); err != nil {
			return first, nil, after, err
		}
		some, after = append(some, line), after+int64(len(raw))
	}
	return first, some, after, nil
}

// took notes that the server has lines: those of next up to an offset, or as many as it says.
func (l *lines) took(count, after int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent, l.offset = count, after
}

// skipTo passes over the lines that the server has got from an earlier process.
func (l *lines) skipTo(count int64) error {
	for {
		first, some, after, err := l.next()
		if err != nil || len(some) == 0 || first >= count {
			return err
		}
		if first+int64(len(some)) <= count {
			l.took(first+int64(len(some)), after)
			continue
		}
		return nil // some of them come again: the server passes over those that it has
	}
}

func (l *lines) close() {
	if err := l.file.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		l.failed = err
	}
}
