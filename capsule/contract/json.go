package contract

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// reader reads one JSON document strictly. It exists because encoding/json takes
// duplicate keys, lone surrogates and any depth in silence, and because a person
// wants a line and a column.
type reader struct {
	data []byte
	pos  int
	path []string // of the value being read
}

// jsonError says where a document stops being JSON that we take.
type jsonError struct {
	line, column int // from 1; the column counts bytes
	pointer      string
	msg, hint    string
}

func (e *jsonError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.line, e.column, e.msg)
}

func (e *jsonError) withHint(hint string) *jsonError {
	e.hint = hint
	return e
}

// readJSON decodes exactly one document. Objects are map[string]any, numbers are
// json.Number in the text they were given. Every error is a *jsonError.
func readJSON(data []byte) (any, error) {
	r := &reader{data: data}
	if err := r.encoding(); err != nil {
		return nil, err
	}
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	if c := r.peek(); c != 0 || r.pos < len(r.data) {
		return nil, r.fail(r.pos, "there is more text after the end of the document")
	}
	return v, nil
}

func (r *reader) encoding() error {
	if bytes.HasPrefix(r.data, []byte("\xef\xbb\xbf")) {
		return r.fail(0, "the text starts with a byte order mark").withHint("save it as UTF-8 without a byte order mark")
	}
	if utf8.Valid(r.data) {
		return nil
	}
	at := 0
	for at < len(r.data) {
		c, size := utf8.DecodeRune(r.data[at:])
		if c == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return r.fail(at, "the text is not valid UTF-8").withHint("save it as UTF-8")
}

func (r *reader) fail(at int, format string, args ...any) *jsonError {
	before := r.data[:min(at, len(r.data))]
	return &jsonError{
		line:    bytes.Count(before, []byte("\n")) + 1,
		column:  len(before) - bytes.LastIndexByte(before, '\n'),
		pointer: pointerTo(r.path...),
		msg:     fmt.Sprintf(format, args...),
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (r *reader) peek() byte {
	for ; r.pos < len(r.data); r.pos++ {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

var words = []struct {
	text  []byte
	value any
}{{[]byte("true"), true}, {[]byte("false"), false}, {[]byte("null"), nil}}

func (r *reader) value() (any, error) {
	switch c := r.peek(); {
	case c == '{':
		return r.object()
	case c == '[':
		return r.array()
	case c == '"':
		return r.str()
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	}
	for _, w := range words {
		if bytes.HasPrefix(r.data[r.pos:], w.text) {
			r.pos += len(w.text)
			return w.value, nil
		}
	}
	return nil, r.unexpected("a value")
}

// unexpected says what stands where something else was wanted.
func (r *reader) unexpected(want string) *jsonError {
	if r.pos >= len(r.data) {
		return r.fail(r.pos, "the text ends where %s was expected", want)
	}
	rest := r.data[r.pos:]
	c, _ := utf8.DecodeRune(rest)
	e := r.fail(r.pos, "expected %s, found %q", want, c)
	switch {
	case c == '\'':
		e.hint = "JSON strings stand in double quotes"
	case c == '/' || c == '#':
		e.hint = "JSON has no comments"
	case bytes.HasPrefix(rest, []byte("NaN")) || bytes.HasPrefix(rest, []byte("Infinity")):
		e.hint = "NaN and Infinity are no JSON numbers; use null or a string"
	case bytes.HasPrefix(rest, []byte("True")) || bytes.HasPrefix(rest, []byte("False")) || bytes.HasPrefix(rest, []byte("None")):
		e.hint = "JSON writes true, false and null"
	}
	return e
}

func (r *reader) enter(key string) error {
	r.path = append(r.path, key)
	if len(r.path) > MaxDepth {
		r.path = r.path[:0]
		return r.fail(r.pos, "the document is nested more than %d levels deep", MaxDepth)
	}
	return nil
}

func (r *reader) leave() { r.path = r.path[:len(r.path)-1] }

func (r *reader) array() (any, error) {
	r.pos++
	list := []any{}
	if r.peek() == ']' {
		r.pos++
		return list, nil
	}
	for {
		if err := r.enter(strconv.Itoa(len(list))); err != nil {
			return nil, err
		}
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		r.leave()
		list = append(list, v)
		if more, err := r.more(']'); err != nil || !more {
			return list, err
		}
	}
}

func (r *reader) object() (any, error) {
	r.pos++
	object := map[string]any{}
	if r.peek() == '}' {
		r.pos++
		return object, nil
	}
	for {
		if err := r.member(object); err != nil {
			return nil, err
		}
		if more, err := r.more('}'); err != nil || !more {
			return object, err
		}
	}
}

// more reads a comma (and says true) or the closing bracket.
func (r *reader) more(closing byte) (bool, error) {
	switch r.peek() {
	case closing:
		r.pos++
		return false, nil
	case ',':
		comma := r.pos
		r.pos++
		if r.peek() == closing {
			return false, r.fail(comma, "there is a comma after the last element").withHint("remove it")
		}
		return true, nil
	}
	return false, r.unexpected(fmt.Sprintf("a comma or %q", closing))
}

func (r *reader) member(object map[string]any) error {
	if r.peek() != '"' {
		return r.unexpected("a field's name in double quotes")
	}
	at := r.pos
	key, err := r.str()
	if err != nil {
		return err
	}
	if len(key) > maxKeyBytes {
		return r.fail(at, "a field's name is longer than %d bytes", maxKeyBytes)
	}
	if r.peek() != ':' {
		return r.unexpected("a colon")
	}
	r.pos++
	if err := r.enter(key); err != nil {
		return err
	}
	if _, taken := object[key]; taken {
		return r.fail(at, "the field %s stands twice in one object", quote(key)).withHint("keep one of them")
	}
	v, err := r.value()
	if err != nil {
		return err
	}
	object[key] = v
	r.leave()
	return nil
}
