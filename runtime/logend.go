package runtime

import (
	"bytes"
	"strings"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// ends says where both streams of a container end. Its init ends each of them with a line, and tells
// in its report what that says. The line may come before the report: one of its form is held until
// something follows, or it is known to be the end.
type ends struct {
	line string            // with which both end; "": the report isn't there
	held map[string][]byte // the newest line of a stream, if it has the form
	over map[string]bool   // the streams of which all is read
	cut  bool              // one of them ended without the line: it broke, or its init died
	done chan struct{}     // closed when that is so of both
}

func newEnds() ends {
	return ends{held: map[string][]byte{}, over: map[string]bool{}, done: make(chan struct{})}
}

// endLineBytes is the length of a line with which a stream may end.
const endLineBytes = len(initreport.EndHead) + initreport.EndIDBytes + len(initreport.EndTail)

// Ended is closed when all is read that the container wrote: both streams have ended, or have come to
// the line with which init ends them.
func (l *Log) Ended() <-chan struct{} { return l.ends.done }

// endsWith takes what the init reported of the streams' last line.
func (l *Log) endsWith(id string) {
	if id == "" {
		return
	}
	l.mu.Lock()
	l.ends.line = initreport.EndHead + id + strings.TrimSuffix(initreport.EndTail, "\n")
	l.mu.Unlock()
	for _, stream := range []string{"stdout", "stderr"} {
		l.settle(stream)
	}
}

// take adds a line of a stream, or holds it. It returns how many bytes were dropped.
func (l *Log) take(stream string, line []byte) (dropped int) {
	if before := l.unhold(stream); before != nil {
		dropped = l.add(stream, before)
	}
	if !mayEnd(line) {
		return dropped + l.add(stream, line)
	}
	l.mu.Lock()
	l.ends.held[stream] = bytes.Clone(line)
	l.mu.Unlock()
	l.settle(stream)
	return dropped
}

// unhold returns the line of a stream that was held, which is so no more.
func (l *Log) unhold(stream string) (line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line = l.ends.held[stream]
	delete(l.ends.held, stream)
	return line
}

// settle ends a stream whose last line is held. The program's own last line may have had no end, so
// that both came as one.
func (l *Log) settle(stream string) {
	l.mu.Lock()
	rest, found := cutLine(l.ends.held[stream], l.ends.line)
	found = found && l.ends.line != ""
	if found {
		delete(l.ends.held, stream)
	}
	l.mu.Unlock()
	if found {
		l.end(stream, rest)
	}
}

// endOfStream ends a stream at which nothing more is to be read. A line of the form that comes last
// is the init's, whose report an adopted container need not have told.
func (l *Log) endOfStream(stream string) {
	held := l.unhold(stream)
	l.mu.Lock()
	l.ends.cut = l.ends.cut || held == nil && !l.ends.over[stream]
	l.mu.Unlock()
	l.end(stream, held[:max(len(held)-endLineBytes, 0)])
}

// Broke reports whether the log has ended without the line of an init: the connection to the engine
// broke, or the container.
func (l *Log) Broke() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends.cut && len(l.ends.over) == 2
}

// end adds what a stream has left, and notes that this is all.
func (l *Log) end(stream string, rest []byte) {
	if len(rest) > 0 {
		l.add(stream, rest)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends.over[stream] {
		return
	}
	if l.ends.over[stream] = true; len(l.ends.over) == 2 {
		close(l.ends.done)
	}
}

// mayEnd reports whether a line has the form of one with which a stream ends.
func mayEnd(line []byte) bool {
	at := len(line) - endLineBytes
	return at >= 0 && bytes.HasPrefix(line[at:], []byte(initreport.EndHead)) &&
		bytes.HasSuffix(line, []byte(initreport.EndTail))
}

// withoutEndLine returns the part of a line that is too long, without what may be the beginning of
// the line with which the stream ends: that stays whole.
func withoutEndLine(data []byte) []byte {
	tail := len(data) - endLineBytes
	if at := bytes.IndexByte(data[tail:], initreport.EndHead[0]); at >= 0 {
		return data[:tail+at]
	}
	return data
}
