package httpwire

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// EventWriter writes a stream of server-sent events. Each event goes out whole, in one
// Write unless it is long, and is flushed. It is not safe for concurrent use.
type EventWriter struct {
	to    io.Writer
	flush func() error
}

// NewEventWriter returns a writer that writes to w. An http.ResponseWriter is flushed
// through all that wraps it.
func NewEventWriter(w io.Writer) *EventWriter {
	e := &EventWriter{to: w, flush: func() error { return nil }}
	switch w := w.(type) {
	case http.ResponseWriter:
		e.flush = http.NewResponseController(w).Flush
	case interface{ Flush() error }:
		e.flush = w.Flush
	}
	return e
}

// lineEnds turns every end of a line that SSE knows into LF, the one that comes out again.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Write writes an event. Line ends within its data become LF, each line a field of its
// own. A name or an id with a line end (or a NUL, in an id), which SSE can't carry, is an
// Input fault. An empty LastID writes none, so that the reader keeps the last one.
func (w *EventWriter) Write(e Event) error {
	b, err := headOf(e.Name, e.LastID)
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(lineEnds.Replace(e.Data), "\n") {
		b.WriteString("data: " + line + "\n")
	}
	b.WriteByte('\n')
	return w.send(b.Bytes())
}

// headOf begins an event.
func headOf(name, id string) (b bytes.Buffer, err error) {
	if strings.ContainsAny(name, "\r\n") || strings.ContainsAny(id, "\r\n\x00") {
		return b, fault.New(fault.Input, "the name or the id of an event goes over the end of a line")
	}
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	return b, nil
}

// shortLine is the most bytes of data that are copied to go out in one Write.
const shortLine = 4 << 10

// WriteLine is Write for data of one line, such as compact JSON. A long one goes out as it is, in a
// Write of its own, so that the writers of many streams can share it. Data with the end of a line is
// an Input fault.
func (w *EventWriter) WriteLine(name, id string, data []byte) error {
	b, err := headOf(name, id)
	if err == nil && bytes.ContainsAny(data, "\r\n") {
		err = fault.New(fault.Input, "the data of an event has more than one line")
	}
	if err != nil {
		return err
	}
	b.WriteString("data: ")
	if len(data) > shortLine {
		for _, part := range [][]byte{b.Bytes(), data} {
			if _, err := w.to.Write(part); err != nil {
				return err
			}
		}
		b.Reset()
	} else {
		b.Write(data)
	}
	b.WriteString("\n\n")
	return w.send(b.Bytes())
}

// Comment writes what readers leave alone: a sign of life.
func (w *EventWriter) Comment(text string) error {
	var b bytes.Buffer
	for line := range strings.SplitSeq(lineEnds.Replace(text), "\n") {
		b.WriteString(": " + line + "\n")
	}
	b.WriteByte('\n')
	return w.send(b.Bytes())
}

func (w *EventWriter) send(raw []byte) error {
	if _, err := w.to.Write(raw); err != nil {
		return err
	}
	if err := w.flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
