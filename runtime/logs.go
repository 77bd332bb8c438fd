package runtime

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"
)

// maxLine is the length in bytes at which a line is cut.
const maxLine = 16 << 10

// LogLine is one line that a unit wrote. Its bytes are the unit's own: whoever
// shows them on a terminal has to take out control characters.
type LogLine struct {
	Time   time.Time
	Stream string // "stdout" or "stderr"
	Text   string // valid UTF-8, without the line's end
	Cut    bool   // it was too long: the next of its stream goes on with it
}

// Log splits a sandbox's two streams into lines, up to a limit. It reads and drops what comes
// after the limit, so that the program doesn't stall, but slowly: see pace.
type Log struct {
	limit int64
	pace  *pace

	emitting sync.Mutex // held during emit: one line at a time
	emit     func(LogLine)

	mu        sync.Mutex
	skip      map[string]int // lines of each stream that aren't emitted
	skipped   func(LogLine)  // is told of these; may be nil
	bytes     int64
	truncated bool
	share     share
	ends      ends
	rest      map[string][]byte // what came behind the last line's end, of each stream that has ended
	finished  bool              // nothing follows: the rest is a line
}

// NewLog returns a Log that emits at most limit bytes of lines, counted as they were written.
// emit is called by one goroutine at a time. The program waits while emit doesn't return.
func NewLog(limit int64, emit func(LogLine)) *Log {
	return &Log{limit: limit, emit: emit, pace: newPace(), ends: newEnds(), rest: map[string][]byte{}}
}

// Skip leaves out the first lines of each stream, which an earlier process has emitted: they
// count against the limit and aren't emitted again. It is called before the Log is used.
// Where the earlier process had reached the limit, use a Log of limit 0 instead: the engine
// may have dropped the beginning of so much output.
func (l *Log) Skip(stdout, stderr int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skip = map[string]int{"stdout": stdout, "stderr": stderr}
}

// OnSkipped has a function told of the lines that are left out, as emit is of the others. It is
// called before the Log is used.
func (l *Log) OnSkipped(tell func(LogLine)) { l.skipped = tell }

// Bytes returns how many bytes were emitted, and whether some were dropped.
func (l *Log) Bytes() (kept int64, truncated bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes, l.truncated
}

// Waited returns for how long the program's output was held back, since it was more than is kept.
func (l *Log) Waited() time.Duration { return time.Duration(l.pace.waited.Load()) }

// Add takes a line beside those of the streams.
func (l *Log) Add(stream string, line []byte) { l.pace.dropped(l.add(stream, line)) }

// drain reads both streams to their end and returns when both have ended.
func (l *Log) drain(streams *Streams) {
	var both sync.WaitGroup
	both.Go(func() { l.read("stdout", streams.Stdout) })
	both.Go(func() { l.read("stderr", streams.Stderr) })
	both.Wait()
}

// read reads to the stream's end. Its error doesn't matter: the engine says elsewhere how the
// container ended.
func (l *Log) read(stream string, r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, maxLine), maxLine)
	lines.Split(splitLine)
	for lines.Scan() {
		if line := lines.Bytes(); !l.holds(stream, line) {
			l.pace.dropped(l.take(stream, line))
		}
	}
	l.endOfStream(stream)
}

// holds reports whether it holds a line back: one without an end may go on where the stream was
// cut off, and whoever reads the log again gets all of it.
func (l *Log) holds(stream string, line []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.finished || line[len(line)-1] == '\n' || isCut(line) {
		return false
	}
	l.rest[stream] = bytes.Clone(line)
	return true
}

// finish takes what was held back as lines: their program has ended.
func (l *Log) finish() {
	l.mu.Lock()
	rest := l.rest
	l.finished, l.rest = true, map[string][]byte{}
	l.mu.Unlock()
	for stream, line := range rest {
		l.add(stream, line)
	}
}

// splitLine is a bufio.SplitFunc that keeps the line's end, which counts, and cuts a line that
// is too long between two characters.
func splitLine(data []byte, atEOF bool) (advance int, line []byte, err error) {
	end := bytes.IndexByte(data, '\n') + 1
	if end == 0 && len(data) >= maxLine {
		end = wholeRunes(withoutEndLine(data))
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

// add emits what of a line is the run's and within the limit. It returns how many bytes were
// dropped.
func (l *Log) add(stream string, line []byte) (dropped int) {
	l.emitting.Lock()
	defer l.emitting.Unlock()
	defer l.endShare()
	own := l.ofRun(stream, line)
	if len(own) == 0 {
		return len(line)
	}
	kept, tell := l.keep(stream, own)
	if len(kept) > 0 && tell != nil {
		text := strings.TrimRight(strings.ToValidUTF8(string(kept), "\uFFFD"), "\r\n")
		tell(LogLine{Time: time.Now(), Stream: stream, Text: text, Cut: isCut(own)})
	}
	return len(line) - len(kept)
}

// isCut reports whether splitLine has cut a line.
func isCut(line []byte) bool {
	return len(line) > maxLine-endLineBytes-utf8.UTFMax && line[len(line)-1] != '\n'
}

// keep counts the part of the line within the limit, and returns it with who is told of it.
func (l *Log) keep(stream string, line []byte) (kept []byte, tell func(LogLine)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.truncated {
		return nil, nil
	}
	if room := l.limit - l.bytes; int64(len(line)) > room {
		l.truncated = true
		line = line[:wholeRunes(line[:max(room, 0)])]
	}
	l.bytes += int64(len(line))
	if l.skip[stream] > 0 {
		l.skip[stream]--
		return line, l.skipped
	}
	return line, l.emit
}

const (
	// droppedRate is how many bytes a second are read of output that is dropped. The engine and
	// this process spend about 4 ms of a processor on each MiB; the program, which may write
	// much faster, waits and spends its own time.
	droppedRate = 4 << 20
	// droppedBurst is how much of it is read at once: who writes a little too much doesn't wait.
	droppedBurst = 1 << 20
	// lineCost is how many bytes a line counts for beside its own: short ones cost us more.
	lineCost = 8
	// droppedStep is how much is read before the next pause.
	droppedStep = 16 << 10
)

// pace slows down the reading of output that is dropped, so that its writer waits.
type pace struct {
	limiter *rate.Limiter
	over    atomic.Bool // see hurry
	waited  atomic.Int64

	mu   sync.Mutex
	owed int
}

func newPace() *pace { return &pace{limiter: rate.NewLimiter(droppedRate, droppedBurst)} }

// dropped waits for as long as a dropped piece of a line costs.
func (p *pace) dropped(bytes int) {
	if bytes == 0 || p.over.Load() {
		return
	}
	p.mu.Lock()
	p.owed += bytes + lineCost
	due := 0
	if p.owed >= droppedStep {
		due, p.owed = p.owed, 0
	}
	p.mu.Unlock()
	if due > 0 {
		delay := p.limiter.ReserveN(time.Now(), min(due, droppedBurst)).Delay()
		time.Sleep(delay)
		p.waited.Add(int64(delay))
	}
}

// hurry ends the pauses: nobody writes any more, and the engine waits for its reader.
func (p *pace) hurry() { p.over.Store(true) }
