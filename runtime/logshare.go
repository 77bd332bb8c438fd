package runtime

import "bytes"

// share is what of a container's two streams is one run's, where there are several, one
// after the other: to a line with which the program ends its part of each.
type share struct {
	end  string          // that line; "": everything is the run's
	past map[string]bool // the streams on which it has come
	over chan struct{}   // closed when it has come on both
	told bool            // so it is

	behind string          // the line that ended the share of the run before
	ahead  map[string]bool // the streams on which that has yet to come
}

// Serve begins the share of a run, which ends with a line. What comes behind that is nobody's
// until the next call. The first run's share includes what came before.
func (l *Log) Serve(end string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.share.past) > 0 {
		l.bytes, l.truncated = 0, false
	}
	s := &l.share
	s.end, s.past, s.over, s.told = end, map[string]bool{}, make(chan struct{}), false
}

// After leaves out what comes before the line that ended the share of an earlier run, and
// that line. It is called before the Log is used.
func (l *Log) After(end string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.share.behind, l.share.ahead = end, map[string]bool{"stdout": true, "stderr": true}
}

// Over is closed when both streams have come to the end of the run's share; nil where that
// has none.
func (l *Log) Over() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.share.over
}

// ofRun returns what of a line is the run's.
func (l *Log) ofRun(stream string, line []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.share
	if s.ahead[stream] {
		if _, came := cutLine(line, s.behind); came {
			delete(s.ahead, stream)
		}
		return nil
	}
	if s.end == "" {
		return line
	}
	if s.past[stream] {
		return nil
	}
	rest, came := cutLine(line, s.end)
	if came {
		s.past[stream] = true
	}
	return rest
}

// endShare tells of the end of a run's share, when its last line was handed on.
func (l *Log) endShare() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := &l.share; len(s.past) == 2 && !s.told {
		s.told = true
		close(s.over)
	}
}

// cutLine takes the last line out of a line that may have begun without the program's own
// line having ended.
func cutLine(line []byte, last string) (rest []byte, found bool) {
	if rest, found = bytes.CutSuffix(bytes.TrimRight(line, "\r\n"), []byte(last)); found {
		return rest, true
	}
	return line, false
}
