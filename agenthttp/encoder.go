package agenthttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/agent-on-demand/aod/fault"
)

// Encoder writes a stream of server-sent events. Each message goes out whole, in one
// Write, and is flushed. It is not safe for concurrent use.
type Encoder struct {
	w     io.Writer
	flush func() error
}

// NewEncoder returns an encoder that writes to w. An http.ResponseWriter is flushed
// through all that wraps it.
func NewEncoder(w io.Writer) *Encoder {
	e := &Encoder{w: w, flush: func() error { return nil }}
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

// Write writes a message. Line ends within its data become LF, each line a field of its
// own. A name or an id with a line end (or a NUL, in an id), which SSE can't carry, is an
// Input fault. An empty LastID writes none, so that the reader keeps the last one.
func (e *Encoder) Write(m Message) error {
	if strings.ContainsAny(m.Name, "\r\n") || strings.ContainsAny(m.LastID, "\r\n\x00") {
		return fault.New(fault.Input, "the name or the id of an event goes over the end of a line")
	}
	var b bytes.Buffer
	if m.LastID != "" {
		b.WriteString("id: " + m.LastID + "\n")
	}
	if m.Name != "" {
		b.WriteString("event: " + m.Name + "\n")
	}
	for line := range strings.SplitSeq(lineEnds.Replace(m.Data), "\n") {
		b.WriteString("data: " + line + "\n")
	}
	b.WriteByte('\n')
	return e.send(b.Bytes())
}

// Comment writes what readers leave alone: a sign of life.
func (e *Encoder) Comment(text string) error {
	var b bytes.Buffer
	for line := range strings.SplitSeq(lineEnds.Replace(text), "\n") {
		b.WriteString(": " + line + "\n")
	}
	b.WriteByte('\n')
	return e.send(b.Bytes())
}

func (e *Encoder) send(raw []byte) error {
	if _, err := e.w.Write(raw); err != nil {
		return err
	}
	if err := e.flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
