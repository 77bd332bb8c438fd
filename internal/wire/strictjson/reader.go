package strictjson

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// reader reads one document, and makes Go values of it or not.
type reader struct {
	data  []byte
	rules Rules
	build bool
	pos   int
	seen  int    // values
	path  []step // to the value being read
}

// step leads from an array or object to one of its values.
type step struct {
	name  string
	index int // where name is "" in an array
	array bool
}

func (r *reader) document() (any, error) {
	if err := r.encoding(); err != nil {
		return nil, err
	}
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	if c := r.peek(); c != 0 || r.pos < len(r.data) {
		return nil, r.fail(Syntax, r.pos, "there is more text after the end of the document")
	}
	return v, nil
}

func (r *reader) encoding() error {
	if bytes.HasPrefix(r.data, []byte("\xef\xbb\xbf")) {
		return r.fail(ByteOrderMark, 0, "the text starts with a byte order mark").
			withHint("save it as UTF-8 without a byte order mark")
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
	return r.fail(NotUTF8, at, "the text is not valid UTF-8").withHint("save it as UTF-8")
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
	if r.seen++; r.rules.Values > 0 && r.seen > r.rules.Values {
		return nil, r.fail(TooMany, r.pos, "the document has more than %d values", r.rules.Values)
	}
	switch c := r.peek(); {
	case c == '{' || c == '[':
		return r.container(c)
	case c == '"':
		return r.text(r.build)
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

func (r *reader) container(bracket byte) (any, error) {
	r.pos++
	if len(r.path) == MaxDepth {
		return nil, r.tooDeep()
	}
	if bracket == '[' {
		return r.array()
	}
	return r.object()
}

// tooDeep points behind the bracket, or behind the name of the first field.
func (r *reader) tooDeep() error {
	bracket := r.pos - 1
	r.path = nil // of no use to anybody
	if r.data[bracket] == '{' && r.peek() == '"' {
		if _, err := r.name(); err != nil {
			return err
		}
	}
	e := r.fail(TooDeep, r.pos, "the document is nested more than %d levels deep", MaxDepth)
	e.Start = bracket
	return e
}

func (r *reader) array() (any, error) {
	list := []any{}
	if r.peek() == ']' {
		r.pos++
		return list, nil
	}
	r.path = append(r.path, step{array: true})
	for i := 0; ; i++ {
		r.path[len(r.path)-1].index = i
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		if r.build {
			list = append(list, v)
		}
		if more, err := r.more(']'); err != nil || !more {
			return list, err
		}
	}
}

func (r *reader) object() (any, error) {
	var object map[string]any // of what stands in it, to build it or to find names that stand twice
	if r.build || !r.rules.Ambiguous {
		object = map[string]any{}
	}
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
		r.path = r.path[:len(r.path)-1]
	}
}

// more reads a comma (and says true) or the closing bracket, which ends the path.
func (r *reader) more(closing byte) (bool, error) {
	inner := r.path
	r.path = r.path[:len(r.path)-1]
	switch r.peek() {
	case closing:
		r.pos++
		return false, nil
	case ',':
		comma := r.pos
		r.pos++
		if r.peek() == closing {
			return false, r.fail(Syntax, comma, "there is a comma after the last element").withHint("remove it")
		}
		r.path = inner
		return true, nil
	}
	return false, r.unexpected(fmt.Sprintf("a comma or %q", closing))
}

// member reads a name and its value, and leaves the path at it.
func (r *reader) member(object map[string]any) error {
	at := r.pos
	name, err := r.name()
	if err != nil {
		return err
	}
	r.path = append(r.path, step{name: name})
	if _, taken := object[name]; taken && !r.rules.Ambiguous {
		e := r.fail(DuplicateName, at, "").withHint("keep one of them")
		e.Name = name
		return e
	}
	v, err := r.value()
	if err == nil && !r.rules.Ambiguous {
		object[name] = v
	}
	return err
}

// name reads the name of a field, and the colon behind it.
func (r *reader) name() (string, error) {
	if r.peek() != '"' {
		return "", r.unexpected("a field's name in double quotes")
	}
	at := r.pos
	name, err := r.text(true)
	if err != nil {
		return "", err
	}
	if len(name) > MaxNameBytes && !r.rules.Unbounded {
		return "", r.fail(TooLong, at, "a field's name is longer than %d bytes", MaxNameBytes)
	}
	if r.peek() != ':' {
		return "", r.unexpected("a colon")
	}
	r.pos++
	return name, nil
}

// unexpected says what stands where something else was wanted.
func (r *reader) unexpected(want string) *Error {
	if r.pos >= len(r.data) {
		return r.fail(Syntax, r.pos, "the text ends where %s was expected", want)
	}
	rest := r.data[r.pos:]
	c, _ := utf8.DecodeRune(rest)
	return r.fail(Syntax, r.pos, "expected %s, found %q", want, c).withHint(hintFor(rest))
}

// habits are what people write in place of JSON.
var habits = []struct {
	prefixes []string
	hint     string
}{
	{[]string{"'"}, "JSON strings stand in double quotes"},
	{[]string{"/", "#"}, "JSON has no comments"},
	{[]string{"NaN", "Infinity"}, "NaN and Infinity aren't JSON numbers; use null or a string"},
	{[]string{"True", "False", "None"}, "JSON writes true, false and null"},
}

func hintFor(text []byte) string {
	for _, habit := range habits {
		for _, prefix := range habit.prefixes {
			if bytes.HasPrefix(text, []byte(prefix)) {
				return habit.hint
			}
		}
	}
	return ""
}

func (r *reader) fail(problem Problem, at int, format string, args ...any) *Error {
	before := r.data[:min(at, len(r.data))]
	return &Error{
		Problem: problem, Offset: at, Start: at,
		Line:    bytes.Count(before, []byte("\n")) + 1,
		Column:  len(before) - bytes.LastIndexByte(before, '\n'),
		Pointer: r.pointer(),
		text:    fmt.Sprintf(format, args...),
	}
}

func (r *reader) pointer() string {
	path := make([]string, len(r.path))
	for i, s := range r.path {
		path[i] = s.name
		if s.array {
			path[i] = strconv.Itoa(s.index)
		}
	}
	return Pointer(path...)
}
