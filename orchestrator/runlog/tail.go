package runlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// maxLine is more than a line of the file takes: the text is cut at 16 KiB by the runtime, and
// JSON writes no byte with more than six.
const maxLine = 128 << 10

// Tail reads the log of a run, which may not exist yet.
type Tail struct {
	path   string
	file   *os.File
	reader *reader
}

// NewTail returns a tail of the log in a run's directory, at its beginning.
func NewTail(runDir string) *Tail { return &Tail{path: pathIn(runDir)} }

// Drain yields the entries that exist now. It returns false when the reader wants no more.
func (t *Tail) Drain(yield func(api.LogEntry, error) bool) (more bool, err error) {
	if t.file == nil {
		if t.file, err = os.Open(t.path); err != nil {
			return true, safefs.IgnoreMissing(err)
		}
		t.reader = newReader(t.file)
	}
	for {
		entry, err := t.reader.next()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return true, err
		}
		if !yield(entry, nil) {
			return false, nil
		}
	}
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
	return entry, nil
}
