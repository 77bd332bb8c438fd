package httpwire

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/agent-on-demand/aod/api/fault"
)

// DefaultEventName is the name of an event that gives none.
const DefaultEventName = "message"

// The limits that a stream can exceed; each comes as the cause of a TooLarge fault.
var (
	ErrLineTooLong    = errors.New("a line is too long")
	ErrEventTooLarge  = errors.New("an event is too large")
	ErrStreamTooLarge = errors.New("the stream is too large")
)

// Event is one event of a stream of server-sent events.
type Event struct {
	Name   string // as read: DefaultEventName where the stream gives none
	Data   string
	LastID string // the last id that was given up to here
}

// EventLimits bound what an EventReader takes, in bytes. Each is above 0.
type EventLimits struct {
	Line   int64  // one line, without its end
	Event  int64  // what one event holds
	Stream int64  // the stream as a whole
	Whose  string // what a fault calls the stream: "the stream of the agent"
}

// EventReader reads a stream of server-sent events to the letter (HTML Living Standard,
// "Server-sent events", parsing and interpreting an event stream). What it holds is
// bounded, and where its input is split doesn't matter. It is not safe for concurrent use.
type EventReader struct {
	in     *bufio.Reader
	limits EventLimits
	read   int64 // bytes
	begun  bool  // a byte order mark would have been seen
	cr     bool  // the last line ended in CR, so that an LF belongs to it
	line   []byte

	name, id, lastID string
	data             []byte
	pending          bool // there are fields of an event that has not come to its end
	err              error
}

// NewEventReader returns a reader of the events in r.
func NewEventReader(r io.Reader, limits EventLimits) *EventReader {
	return &EventReader{in: bufio.NewReader(r), limits: limits}
}

// Next returns the next event. At the end of the stream it is io.EOF, and what had no
// empty line after it is dropped. An error that is not the reader's is a TooLarge fault.
// Every error stays.
func (r *EventReader) Next() (Event, error) {
	for r.err == nil {
		if r.err = r.readLine(); r.err != nil {
			break
		}
		if len(r.line) == 0 {
			if e, ok := r.dispatch(); ok {
				return e, nil
			}
			continue
		}
		r.err = r.field(r.line)
	}
	return Event{}, r.err
}

// Unfinished reports whether the stream has ended amid an event.
func (r *EventReader) Unfinished() bool {
	amidLine := len(r.line) > 0 && r.line[0] != ':'
	return r.err != nil && (r.pending || amidLine)
}

// readLine reads one line without its end, which is CR, LF or both. A CR ends a line at
// once: what comes after it may be far off.
func (r *EventReader) readLine() error {
	r.line = r.line[:0]
	if err := r.skipMark(); err != nil {
		return err
	}
	for {
		c, err := r.readByte()
		if err != nil {
			return err
		}
		after := r.cr
		r.cr = c == '\r'
		switch {
		case c == '\n' && after:
			continue
		case c == '\n' || c == '\r':
			r.line = toText(r.line)
			return nil
		case int64(len(r.line)) >= r.limits.Line:
			return r.over(ErrLineTooLong, r.limits.Line)
		}
		r.line = append(r.line, c)
	}
}

// skipMark leaves out one byte order mark at the very beginning.
func (r *EventReader) skipMark() error {
	const mark = "\xef\xbb\xbf"
	if r.begun {
		return nil
	}
	for n := range len(mark) { // no more than is needed to tell: the rest may be far off
		head, err := r.in.Peek(n + 1)
		if len(head) <= n || head[n] != mark[n] {
			r.begun = true
			if len(head) == 0 {
				return err
			}
			return nil
		}
	}
	r.begun = true
	for range len(mark) {
		if _, err := r.readByte(); err != nil {
			return err
		}
	}
	return nil
}

func (r *EventReader) readByte() (byte, error) {
	c, err := r.in.ReadByte()
	if err != nil {
		return 0, err
	}
	if r.read++; r.read > r.limits.Stream {
		return 0, r.over(ErrStreamTooLarge, r.limits.Stream)
	}
	return c, nil
}

// field takes one line that isn't empty. Fields that are not known are left alone.
func (r *EventReader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		r.name, r.pending = string(value), true
	case "data":
		r.data, r.pending = append(append(r.data, value...), '\n'), true
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.id = string(value)
		}
	}
	if int64(len(r.data)+len(r.name)+len(r.id)) > r.limits.Event {
		return r.over(ErrEventTooLarge, r.limits.Event)
	}
	return nil
}

// dispatch ends an event at an empty line; one without data is none.
func (r *EventReader) dispatch() (Event, bool) {
	r.lastID = r.id
	e := Event{Name: r.name, LastID: r.lastID}
	whole := len(r.data) > 0
	if whole {
		e.Data = string(r.data[:len(r.data)-1])
	}
	if e.Name == "" {
		e.Name = DefaultEventName
	}
	r.name, r.data, r.pending = "", r.data[:0], false
	return e, whole
}

// over returns the fault of a stream beyond one of its limits.
func (r *EventReader) over(limit error, bytes int64) error {
	return fault.Wrap(fault.TooLarge, limit, "%s is more than is taken: the limit is %d bytes", r.limits.Whose, bytes)
}
