package runtime

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// maxLine is where a line without an end is cut.
const maxLine = 16 << 10

// LogLine is one line that a unit wrote. Its bytes are the unit's own: whoever
// shows them on a terminal has to take out control characters.
type LogLine struct {
	Time   time.Time
	Stream string // "stdout" or "stderr"
	Text   string // valid UTF-8, without the line's end
}

// Log takes a sandbox's two streams apart into lines and keeps to a limit: what
// comes after it is read, so that the program doesn't stall, and dropped.
type Log struct {
	limit int64

	emitting sync.Mutex // one line at a time
	emit     func(LogLine)

	mu        sync.Mutex
	skip      map[string]int // lines of each stream that aren't emitted
	bytes     int64
	truncated bool
	share     share
}

// NewLog returns a Log that hands at most limit bytes of lines to emit, counted as they
// were written. It is called from one goroutine at a time, and holds the program up
// while it doesn't return.
func NewLog(limit int64, emit func(LogLine)) *Log { return &Log{limit: limit, emit: emit} }

// Skip leaves out the first lines of each stream, which an earlier process has handed
// on already: they count against the limit and aren't emitted again. It is called before
// the Log is used. Where that process had met the limit, a Log of limit 0 does instead: of
// so much output the engine may have dropped the beginning.
func (l *Log) Skip(stdout, stderr int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skip = map[string]int{"stdout": stdout, "stderr": stderr}
}

// Bytes returns how much was kept, and whether something was dropped.
func (l *Log) Bytes() (kept int64, truncated bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes, l.truncated
}

// drain reads both streams to their end and returns when both have ended.
func (l *Log) drain(streams *Streams) {
	var both sync.WaitGroup
	both.Go(func() { l.read("stdout", streams.Stdout) })
	both.Go(func() { l.read("stderr", streams.Stderr) })
	both.Wait()
}

// read goes on until the stream ends. How it ends doesn't matter: the engine
// says elsewhere how the container did.
func (l *Log) read(stream string, r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, maxLine), maxLine)
	lines.Split(splitLine)
	for lines.Scan() {
		l.add(stream, lines.Bytes())
	}
}

// splitLine is a bufio.SplitFunc that keeps the line's end, to be counted, and cuts
// what is too long for one line between two characters.
func splitLine(data []byte, atEOF bool) (advance int, line []byte, err error) {
	end := bytes.IndexByte(data, '\n') + 1
	if end == 0 && len(data) >= maxLine {
		end = wholeRunes(data)
	}
	if end == 0 && atEOF {
		end = len(data)
	}
	if end == 0 {
		return 0, nil, nil // more is to come
	}
	return end, data[:end], nil
}

// wholeRunes returns the length of data without a character that is cut off at its end.
func wholeRunes(data []byte) int {
	for n := len(data) - 1; n >= 0 && n > len(data)-utf8.UTFMax; n-- {
		if utf8.RuneStart(data[n]) && !utf8.FullRune(data[n:]) {
			return n
		}
	}
	return len(data)
}

func (l *Log) add(stream string, line []byte) {
	l.emitting.Lock()
	defer l.emitting.Unlock()
	defer l.endShare()
	if line = l.ofRun(stream, line); len(line) == 0 {
		return
	}
	if line = l.keep(stream, line); len(line) == 0 {
		return
	}
	text := strings.TrimRight(strings.ToValidUTF8(string(line), "\uFFFD"), "\r\n")
	l.emit(LogLine{Time: time.Now(), Stream: stream, Text: text})
}

// keep counts what of the line is within the limit, and returns what is to be emitted.
func (l *Log) keep(stream string, line []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.truncated {
		return nil
	}
	if room := l.limit - l.bytes; int64(len(line)) > room {
		l.truncated = true
		line = line[:wholeRunes(line[:max(room, 0)])]
	}
	l.bytes += int64(len(line))
	if l.skip[stream] > 0 {
		l.skip[stream]--
		return nil
	}
	return line
}
