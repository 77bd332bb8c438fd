package agenthttp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/fault"
)

// defaultName is the name of a message that gives none.
const defaultName = "message"

// The limits that a stream can exceed; each comes as the cause of a TooLarge fault.
var (
	ErrLineTooLong    = errors.New("a line is too long")
	ErrEventTooLarge  = errors.New("an event is too large")
	ErrStreamTooLarge = errors.New("the stream is too large")
)

// Message is one event of a stream of server-sent events.
type Message struct {
	Name   string // defaultName where the stream gives none
	Data   string
	LastID string // the last id that was given up to here
}

// Decoder reads a stream of server-sent events to the letter (HTML Living Standard,
// "Server-sent events", parsing and interpreting an event stream). What it holds is
// bounded, and where its input is split doesn't matter.
type Decoder struct {
	in     *bufio.Reader
	limits Limits
	read   int64 // bytes
	begun  bool  // a byte order mark would have been seen
	cr     bool  // the last line ended in CR, so that an LF belongs to it
	line   []byte

	name, id, lastID string
	data             []byte
	pending          bool // there are fields of a message that has not come to its end
	retry            time.Duration
	err              error
}

// NewDecoder returns a decoder of r; of the limits it keeps Line, Event and Stream.
func NewDecoder(r io.Reader, limits Limits) *Decoder {
	return &Decoder{in: bufio.NewReader(r), limits: limits.orDefault()}
}

// Next returns the next message. At the end of the stream it is io.EOF, and what had no
// empty line after it is dropped. An error that is not the reader's is a TooLarge fault.
// Every error stays.
func (d *Decoder) Next() (Message, error) {
	for d.err == nil {
		if d.err = d.readLine(); d.err != nil {
			break
		}
		if len(d.line) == 0 {
			if m, ok := d.dispatch(); ok {
				return m, nil
			}
			continue
		}
		d.err = d.field(d.line)
	}
	return Message{}, d.err
}

// Unfinished reports whether the stream has ended amid a message.
func (d *Decoder) Unfinished() bool {
	amidLine := len(d.line) > 0 && d.line[0] != ':'
	return d.err != nil && (d.pending || amidLine)
}

// Retry returns how long the stream wants its reader to wait before it connects again;
// 0 where it says nothing.
func (d *Decoder) Retry() time.Duration { return d.retry }

// readLine reads one line without its end, which is CR, LF or both. A CR ends a line at
// once: what comes after it may be far off.
func (d *Decoder) readLine() error {
	d.line = d.line[:0]
	if err := d.skipMark(); err != nil {
		return err
	}
	for {
		c, err := d.readByte()
		if err != nil {
			return err
		}
		after := d.cr
		d.cr = c == '\r'
		switch {
		case c == '\n' && after:
			continue
		case c == '\n' || c == '\r':
			d.line = toText(d.line)
			return nil
		case int64(len(d.line)) >= d.limits.Line:
			return over(ErrLineTooLong, d.limits.Line)
		}
		d.line = append(d.line, c)
	}
}

// skipMark leaves out one byte order mark at the very beginning.
func (d *Decoder) skipMark() error {
	const mark = "\xef\xbb\xbf"
	if d.begun {
		return nil
	}
	for n := range len(mark) { // no more than is needed to tell: the rest may be far off
		head, err := d.in.Peek(n + 1)
		if len(head) <= n || head[n] != mark[n] {
			d.begun = true
			if len(head) == 0 {
				return err
			}
			return nil
		}
	}
	d.begun = true
	for range len(mark) {
		if _, err := d.readByte(); err != nil {
			return err
		}
	}
	return nil
}

func (d *Decoder) readByte() (byte, error) {
	c, err := d.in.ReadByte()
	if err != nil {
		return 0, err
	}
	if d.read++; d.read > d.limits.Stream {
		return 0, over(ErrStreamTooLarge, d.limits.Stream)
	}
	return c, nil
}

// field takes one line that isn't empty. Fields that are not known are left alone.
func (d *Decoder) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		d.name, d.pending = string(value), true
	case "data":
		d.data, d.pending = append(append(d.data, value...), '\n'), true
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			d.id = string(value)
		}
	case "retry":
		d.setRetry(value)
	}
	if int64(len(d.data)+len(d.name)+len(d.id)) > d.limits.Event {
		return over(ErrEventTooLarge, d.limits.Event)
	}
	return nil
}

// setRetry takes ASCII digits, in milliseconds, and nothing else.
func (d *Decoder) setRetry(value []byte) {
	const most = int64(24 * time.Hour / time.Millisecond)
	if len(value) == 0 || len(bytes.Trim(value, "0123456789")) > 0 {
		return
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n > most { // there are only digits, so that it is too large
		n = most
	}
	d.retry = time.Duration(n) * time.Millisecond
}

// dispatch ends a message at an empty line; one without data is none.
func (d *Decoder) dispatch() (Message, bool) {
	d.lastID = d.id
	m := Message{Name: d.name, LastID: d.lastID}
	whole := len(d.data) > 0
	if whole {
		m.Data = string(d.data[:len(d.data)-1])
	}
	if m.Name == "" {
		m.Name = defaultName
	}
	d.name, d.data, d.pending = "", d.data[:0], false
	return m, whole
}

func over(limit error, bytes int64) error {
	return fault.Wrap(fault.TooLarge, limit, "the stream of the agent is more than is taken: the limit is %d bytes", bytes)
}
