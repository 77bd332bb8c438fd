package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Bounds of what a program says.
const (
	MaxMessage = 8 << 20  // bytes of one message; a longer one is skipped
	MaxTurn    = 64 << 20 // bytes of stdout for one request; more end the turn
	maxValues  = 250_000  // of one document: texts, numbers, arrays, objects
	maxHeaders = 64 << 10 // bytes of the headers of one message, and of its begin; also the size of the buffer
)

// message is what a program wrote between two borders.
type message struct {
	body    []byte
	size    int64 // bytes of stdout that it took, with its line end or its headers
	tooLong bool  // more than MaxMessage: the body is no more than its begin
}

// messages takes messages out of a program's stdout.
type messages struct {
	from    *bufio.Reader
	framing Framing
}

func newMessages(stdout io.Reader, framing Framing) *messages {
	return &messages{from: bufio.NewReaderSize(stdout, maxHeaders), framing: framing}
}

// next returns the next message. The error is io.EOF after the last one, a *ProgramError where
// the framing is lost, or the reader's.
func (m *messages) next() (message, error) {
	if m.framing == Length {
		return m.framed()
	}
	return m.line()
}

// ready reports whether the next message is here already.
func (m *messages) ready() bool {
	here, _ := m.from.Peek(m.from.Buffered())
	return m.framing != Length && bytes.IndexByte(here, '\n') >= 0
}

// line returns the next line. One that never ends is given up where it breaks the bound of a
// turn.
func (m *messages) line() (message, error) {
	var parts [][]byte // joined at the end: what grows by appending takes a multiple of a long line
	var size int64
	for {
		part, err := m.from.ReadSlice('\n')
		size += int64(len(part))
		if size > MaxMessage {
			parts = parts[:1]
		} else {
			parts = append(parts, bytes.Clone(part))
		}
		switch {
		case err != nil && !errors.Is(err, bufio.ErrBufferFull) && (!errors.Is(err, io.EOF) || size == 0):
			return message{}, err
		case err == nil, errors.Is(err, io.EOF), size > MaxTurn:
			body := bytes.TrimRight(bytes.Join(parts, nil), "\r\n")
			return message{body: body, size: size, tooLong: size > MaxMessage}, nil
		}
	}
}

var errFraming = &ProgramError{Msg: "the program's stdout has no Content-Length where a message begins"}

// framed returns the next message behind headers. A line that no header can be, where a message
// might begin, is a message of its own: programs print such lines.
func (m *messages) framed() (message, error) {
	length, headers := int64(-1), int64(0)
	for {
		line, err := m.from.ReadSlice('\n')
		headers += int64(len(line))
		switch {
		case errors.Is(err, io.EOF) && headers == 0:
			return message{}, io.EOF
		case errors.Is(err, bufio.ErrBufferFull) || headers > maxHeaders:
			return message{}, errFraming
		case errors.Is(err, io.EOF):
			return message{}, io.ErrUnexpectedEOF
		case err != nil:
			return message{}, err
		}
		name, value, isHeader := strings.Cut(strings.TrimRight(string(line), "\r\n"), ":")
		switch {
		case strings.EqualFold(name, "Content-Length") && length < 0:
			if length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 32); err != nil || length < 0 {
				return message{}, errFraming
			}
		case length < 0:
			return message{body: bytes.Clone(bytes.TrimRight(line, "\r\n")), size: headers}, nil
		case !isHeader && name == "":
			return m.body(headers, length)
		}
	}
}

// body returns the message of the given length, whose headers were read.
func (m *messages) body(headers, length int64) (message, error) {
	read := message{size: headers + length, tooLong: length > MaxMessage}
	wanted := length
	if read.tooLong {
		wanted = maxHeaders
	}
	into := bytes.NewBuffer(make([]byte, 0, min(length, maxHeaders)))
	_, err := io.CopyN(into, m.from, wanted)
	if err == nil {
		_, err = io.CopyN(io.Discard, m.from, length-wanted)
	}
	read.body = into.Bytes()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return read, err
}

// frame writes a message as the framing has it.
func frame(framing Framing, body []byte) []byte {
	if framing == Length {
		return append([]byte("Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
	}
	return append(body, '\n')
}

// decode reads the body of a message, or a line of an output: as JSON, or as what is JSON but for
// odd characters. The error is that of the body as it is.
func decode(body []byte) (document any, err error) {
	if err = checkValues(body); err == nil {
		document, err = strictjson.Decode(body)
	}
	if err == nil {
		return document, nil
	}
	mended := mend(body)
	rules := strictjson.Rules{Ambiguous: true, Unbounded: true, Values: maxValues}
	if strictjson.Check(mended, rules) != nil {
		return nil, err
	}
	from := json.NewDecoder(bytes.NewReader(mended))
	from.UseNumber()
	return document, from.Decode(&document)
}

// checkValues refuses a document that would take a large multiple of its bytes: 8 MiB of {"a":0}
// make 370 MiB.
func checkValues(document []byte) error {
	if len(document) < 2*maxValues { // each takes a byte, and one that parts it from the next
		return nil
	}
	return strictjson.Check(document, strictjson.Rules{Ambiguous: true, Unbounded: true, Values: maxValues})
}

// fieldsOf returns the texts among the fields of an object up to where it can't be read; of two
// with one name the first.
func fieldsOf(begin []byte) map[string]string {
	fields := map[string]string{}
	for name, value := range strictjson.Members(mend(begin)) {
		if _, twice := fields[name]; !twice {
			fields[name] = strictjson.Text(value)
		}
	}
	return fields
}

// encode writes a message of ours.
func encode(v any) []byte {
	raw, _ := strictjson.Encode(v) // texts, numbers, maps and what was read can be written
	return raw
}

// at returns what stands in a document at a path; nil is nothing.
func at(document any, path ...string) any {
	found, _ := strictjson.Lookup(document, path)
	return found
}

// reasonOf makes a text of what a program tells of a failure: a text, several, or an object with a
// message. Other data is told as JSON.
func reasonOf(told any) string {
	switch told := told.(type) {
	case nil, bool, json.Number:
		return ""
	case []any:
		var reasons []string
		for _, each := range told {
			if reason := reasonOf(each); reason != "" {
				reasons = append(reasons, reason)
			}
		}
		return strings.Join(reasons, "; ")
	case map[string]any:
		if message := textAt(told, "message"); message != "" {
			return strings.TrimSuffix(message+": "+reasonOf(told["data"]), ": ")
		}
	}
	return text(told)
}

// textAt returns the text at a path; "" is none.
func textAt(document any, path ...string) string {
	text, _ := at(document, path...).(string)
	return text
}

// listAt returns the array at a path.
func listAt(document any, path ...string) []any {
	list, _ := at(document, path...).([]any)
	return list
}
