package runtime

import "bytes"

// share is one run's part of a container's two streams, where the container serves several
// runs in turn. The program ends a run's part of each stream with a line.
type share struct {
	endLine string          // that line; "": everything is the run's
	ended   map[string]bool // the streams on which it has come
	done    chan struct{}   // closed when it has come on both
	closed  bool            // done is

	skipTo   string          // the line that ended an earlier run's share
	skipping map[string]bool // the streams on which that has yet to come
}

// BeginShare begins the share of a run, which ends with the line endLine. Output after that
// line is dropped until the next call. The first run's share includes the output before it.
func (l *Log) BeginShare(endLine string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.share.ended) > 0 {
		l.bytes, l.truncated = 0, false
	}
	s := &l.share
	s.endLine, s.ended, s.done, s.closed = endLine, map[string]bool{}, make(chan struct{}), false
}

// SkipThrough leaves out the output up to and with the line that ended an earlier run's share.
// It is called before the Log is used.
func (l *Log) SkipThrough(endLine string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.share.skipTo, l.share.skipping = endLine, map[string]bool{"stdout": true, "stderr": true}
}

// ShareEnded is closed when the run's share has ended on both streams. It is nil without a
// BeginShare.
func (l *Log) ShareEnded() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.share.done
}

// ofRun returns the part of a line that is the run's.
func (l *Log) ofRun(stream string, line []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.share
	if s.skipping[stream] {
		if _, found := cutLine(line, s.skipTo); found {
			delete(s.skipping, stream)
		}
		return nil
	}
	if s.endLine == "" {
		return line
	}
	if s.ended[stream] {
		return nil
	}
	rest, found := cutLine(line, s.endLine)
	if found {
		s.ended[stream] = true
	}
	return rest
}

// endShare closes ShareEnded when the last line of the share was emitted.
func (l *Log) endShare() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := &l.share; len(s.ended) == 2 && !s.closed {
		s.closed = true
		close(s.done)
	}
}

// cutLine cuts the end line off a line. The program's own last line may have had no end, so
// that both came as one.
func cutLine(line []byte, endLine string) (rest []byte, found bool) {
	if rest, found = bytes.CutSuffix(bytes.TrimRight(line, "\r\n"), []byte(endLine)); found {
		return rest, true
	}
	return line, false
}
