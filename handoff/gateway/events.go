package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Bounds on a stream of events, in bytes.
const (
	maxLine  = 8<<20 + 64<<10 // a line of 8 MiB, with the name of its field
	maxEvent = 16 << 20
)

var (
	errLine  = errors.New("a line of the stream is longer than 8 MiB")
	errEvent = errors.New("an event of the stream is larger than 16 MiB")
)

// eventReader cuts a stream after each event, and keeps every byte. Where its input is split
// doesn't matter. Lines end with LF, CR or both.
type eventReader struct {
	in   *bufio.Reader
	raw  []byte
	line int  // bytes of the line that is being read
	cr   bool // the last byte was a CR, to which an LF may belong
}

func newEventReader(r io.Reader) *eventReader { return &eventReader{in: bufio.NewReader(r)} }

// next returns the bytes of the next event, with the empty line at its end. They are valid
// until the next call. At the end of the stream there may be some without an empty line, and
// then io.EOF without any.
func (e *eventReader) next() ([]byte, error) {
	e.raw = e.raw[:0]
	for {
		if _, err := e.in.Peek(1); err != nil {
			if errors.Is(err, io.EOF) && len(e.raw) > 0 {
				return e.raw, nil
			}
			return nil, err
		}
		e.take(e.inLine())
		if e.line > maxLine {
			return nil, errLine
		}
		if len(e.raw) > maxEvent {
			return nil, errEvent
		}
		if e.in.Buffered() == 0 {
			continue
		}
		c, _ := e.in.ReadByte() // it is there
		e.raw = append(e.raw, c)
		if e.ends(c) {
			return e.raw, nil
		}
	}
}

// inLine returns what is there before the next end of a line.
func (e *eventReader) inLine() []byte {
	there, _ := e.in.Peek(e.in.Buffered()) // it is there
	for _, end := range []byte("\n\r") {
		if i := bytes.IndexByte(there, end); i >= 0 {
			there = there[:i]
		}
	}
	return there
}

func (e *eventReader) take(part []byte) {
	if len(part) == 0 {
		return
	}
	e.raw = append(e.raw, part...)
	e.line += len(part)
	e.cr = false
	_, _ = e.in.Discard(len(part)) // it is there
}

// ends takes a CR or an LF, and reports whether it ends an event.
func (e *eventReader) ends(c byte) bool {
	after := e.cr
	e.cr = c == '\r'
	if c == '\n' && after {
		return false // it belongs to the CR
	}
	empty := e.line == 0
	e.line = 0
	if empty && c == '\r' && e.in.Buffered() > 0 {
		e.takeLF()
	}
	return empty
}

// takeLF takes the LF that belongs to a CR, if it is there already.
func (e *eventReader) takeLF() {
	if next, err := e.in.Peek(1); err == nil && next[0] == '\n' {
		_, _ = e.in.ReadByte() // it was seen
		e.raw = append(e.raw, '\n')
		e.cr = false
	}
}

// eventData returns what the data lines of an event hold, joined by LF.
func eventData(raw []byte) []byte {
	var data []byte
	found := false
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	for len(raw) > 0 {
		end := bytes.IndexAny(raw, "\r\n")
		line := raw
		if end < 0 {
			raw = nil
		} else {
			line, raw = raw[:end], raw[end+1:]
		}
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		if !found {
			data, found = value, true
			continue
		}
		data = append(append(data[:len(data):len(data)], '\n'), value...)
	}
	return data
}
