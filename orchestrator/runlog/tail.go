package runlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// maxLine is more than a line of the file takes: the text is cut at 16 KiB by the runtime, and
// JSON writes no byte with more than six.
const maxLine = 128 << 10

// Tail reads lines of the log of a run, which may not exist yet.
type Tail struct {
	path        string
	wanted      api.LogFilter
	first, past int64 // the number of the first line that is wanted, and of the first one after those
	file        *os.File
	reader      *reader
}

// NewTail returns a tail of the log in a run's directory, at the first line that is wanted.
func NewTail(runDir string, wanted api.LogFilter) *Tail {
	t := &Tail{path: pathIn(runDir), wanted: wanted, first: wanted.After + 1, past: math.MaxInt64}
	if wanted.Before > 0 {
		t.past = wanted.Before
	}
	return t
}

// Drain yields the entries that exist now. It returns false when the reader wants no more.
func (t *Tail) Drain(yield func(api.LogEntry, error) bool) (more bool, err error) {
	if t.file == nil {
		if more, err := t.open(); !more || err != nil {
			return true, err
		}
	}
	for {
		entry, err := t.reader.next()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return true, err
		}
		if entry.Line < t.first {
			continue
		}
		if entry.Line >= t.past || !yield(entry, nil) {
			return false, nil
		}
	}
}

// open opens the file at the first line that is wanted, if there is one yet.
func (t *Tail) open() (there bool, err error) {
	file, err := os.Open(t.path)
	if err != nil {
		t.wanted.Tail = 0 // every line is still to come
		return false, safefs.IgnoreMissing(err)
	}
	t.file = file
	if t.wanted.Tail > 0 {
		there, err := countLines(file)
		if err != nil {
			return false, err
		}
		if !t.wanted.Follow {
			t.past = min(t.past, there+1)
		}
		t.first = max(t.first, min(t.past-1, there)-t.wanted.Tail+1)
	}
	start, err := startOf(file, t.first)
	if err == nil {
		_, err = file.Seek(start, io.SeekStart)
	}
	t.reader = newReader(file)
	return true, err
}

// Close closes the file.
func (t *Tail) Close() {
	if t.file != nil {
		_ = t.file.Close() // read only
	}
}

// reader reads whole lines of a file that may be growing.
type reader struct {
	r      *bufio.Reader
	line   int64  // the number of the last one
	part   []byte // of a line that isn't whole yet
	offset int64  // behind the last whole line
}

func newReader(r io.Reader) *reader { return &reader{r: bufio.NewReader(r)} }

var errDamaged = errors.New("the log's file is damaged")

// next returns the next entry, or io.EOF when there is no whole line yet.
func (l *reader) next() (api.LogEntry, error) {
	var entry api.LogEntry
	line, err := l.r.ReadBytes('\n')
	l.part = append(l.part, line...)
	if err != nil {
		return entry, err
	}
	line, l.part = l.part, nil
	if len(line) > maxLine || json.Unmarshal(bytes.TrimSpace(line), &entry) != nil {
		return entry, errDamaged
	}
	l.offset += int64(len(line))
	if entry.Line == 0 { // of an older version
		entry.Line = l.line + 1
	}
	l.line = entry.Line
	return entry, nil
}
