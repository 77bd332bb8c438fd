package translate

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Bounds on one stream, beside those on an event: what a writer has to remember of it.
const (
	maxStream = 16 << 20 // bytes
	maxParts  = 4096     // parts of an answer
)

// delta is what an event adds to an answer. A new part begins where its kind or its call changes.
type delta struct {
	kind     partKind
	text     string
	id, name string // of a call that begins
	at       value
}

func (d delta) begins() bool { return d.id != "" || d.name != "" }

// eventReader reads the events of a stream.
type eventReader interface {
	// read returns what an event adds, and notes in the answer what it says of the whole.
	read(o *fields, a *answer) []delta
}

// eventWriter writes the events of a stream.
type eventWriter interface {
	begin()           // the answer
	open(p part)      // a part of it
	add(text string)  // to that part
	close(p part)     // it is whole
	end(refuses bool) // the answer
}

// Stream translates the events of one answer, in their order.
type Stream struct {
	answer // without parts
	t      *Translation
	from   eventReader
	to     eventWriter
	bad    problems
	out    bytes.Buffer

	begun, refuses, ended bool
	isOpen                bool
	now                   part // the one that is open; what it says is kept where a writer repeats it
	said                  strings.Builder
	parts, size           int
	calls                 map[string]bool // by their ids
	keeps                 bool
}

// Stream returns a translator of one stream.
func (t *Translation) Stream() *Stream {
	s := &Stream{t: t, from: dialects[t.provider].readEvents(), calls: map[string]bool{}}
	s.bad.answers = true
	s.to = dialects[t.asker].writeEvents(s)
	_, s.keeps = s.to.(*responsesWriter)
	s.echo = t.echo
	return s
}

// Event translates what one event of the provider says, its data, into events of the asker's, or into
// none. usage is what was counted so far; nil: nothing. The bytes hold until the next call. The error is an
// *Error, and the stream is over then.
func (s *Stream) Event(data []byte, usage *Usage) ([]byte, error) {
	s.out.Reset()
	s.usage = usage
	data = bytes.TrimSpace(data)
	if s.ended || s.bad.first != nil || len(data) == 0 || string(data) == "[DONE]" {
		return s.written()
	}
	if strictjson.Check(data, strictjson.Rules{Ambiguous: true, Unbounded: true}) != nil {
		s.bad.first = &Error{Why: "an event isn't JSON"}
		return nil, s.bad.first
	}
	for _, d := range s.from.read(value{bad: &s.bad, raw: data}.object(), &s.answer) {
		s.begin()
		s.take(d)
	}
	if s.id != "" {
		s.begin()
	}
	return s.written()
}

func (s *Stream) written() ([]byte, error) {
	if s.bad.first != nil {
		return nil, s.bad.first
	}
	return s.out.Bytes(), nil
}

// End returns the events with which the answer ends.
func (s *Stream) End(usage *Usage) ([]byte, error) {
	s.out.Reset()
	s.usage = usage
	if s.ended || s.bad.first != nil {
		return s.written()
	}
	s.begin()
	s.shut()
	s.stop = cmp.Or(s.stop, stopEnd)
	if s.stop == stopEnd && len(s.calls) > 0 {
		s.stop = stopTools
	}
	s.to.end(s.refuses)
	s.ended = true
	return s.written()
}

func (s *Stream) begin() {
	if !s.begun {
		s.begun = true
		s.created = cmp.Or(max(s.created, 0), time.Now().Unix())
		s.to.begin()
	}
}

// take adds to the part that is open, or opens another one.
func (s *Stream) take(d delta) {
	s.size += len(d.text) + len(d.id) + len(d.name)
	if s.keeps && s.size > maxStream {
		d.at.refuse("the stream is longer than what can be translated")
	}
	if d.begins() || !s.isOpen || s.now.kind != d.kind {
		if d.text == "" && d.kind != callPart {
			return
		}
		s.shut()
		s.openPart(d)
	}
	if d.text != "" && s.bad.first == nil {
		s.now.text = "more" // than nothing
		if s.keeps {
			s.said.WriteString(d.text)
		}
		s.to.add(d.text)
	}
}

func (s *Stream) openPart(d delta) {
	if s.parts++; s.parts > maxParts {
		d.at.refuse("the answer has too many parts")
	}
	if d.kind == callPart {
		if d.id == "" || d.name == "" || s.calls[d.id] {
			d.at.refuse("a call has an id of its own and a name, and comes in one piece")
		}
		s.calls[d.id] = true
	}
	s.refuses = s.refuses || d.kind == refusalPart
	s.isOpen, s.now = true, part{kind: d.kind, at: d.at, id: d.id, name: d.name}
	if s.bad.first == nil {
		s.to.open(s.now)
	}
}

// shut ends the part that is open. A call without arguments has none, which is an empty object.
func (s *Stream) shut() {
	if !s.isOpen || s.bad.first != nil {
		return
	}
	if s.now.kind == callPart && s.now.text == "" {
		s.said.WriteString("{}")
		s.to.add("{}")
	}
	s.now.text = s.said.String()
	s.to.close(s.now)
	s.isOpen = false
	s.said.Reset()
}

// data writes an event without a name.
func (s *Stream) data(v any) { _, _ = fmt.Fprintf(&s.out, "data: %s\n\n", encode(v)) }

// named writes an event that repeats its name in its data.
func (s *Stream) named(name string, v object) {
	v["type"] = name
	_, _ = fmt.Fprintf(&s.out, "event: %s\n", name)
	s.data(v)
}
