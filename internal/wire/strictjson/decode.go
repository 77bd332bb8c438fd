package strictjson

import (
	"bytes"
	"unicode/utf8"
)

// MaxDepth is how many arrays and objects may lie within one another.
const MaxDepth = 64

// Limits on one name and one number of a document, unless the rules leave them out.
const (
	MaxNameBytes   = 4096
	MaxNumberBytes = 400
	maxExponent    = 400 // 1e1000000 takes seconds to compare
)

// Rules say what Check takes beyond what Decode takes.
type Rules struct {
	// Ambiguous takes what readers of JSON read differently: names that stand twice,
	// half surrogate pairs, numbers beyond a double.
	Ambiguous bool
	// Unbounded takes names and numbers of any length.
	Unbounded bool
	// Values is how many values the document may have, itself included; 0 is any number. Decode
	// makes up to 200 bytes of one that takes two.
	Values int
}

// Decode reads exactly one document in UTF-8. Objects are map[string]any, arrays []any,
// numbers json.Number in the text that they were given. How large the text may be is up
// to the caller; what is built takes a small multiple of it. An error is an *Error.
func Decode(data []byte) (any, error) {
	r := &reader{data: data, build: true}
	return r.document()
}

// Check does what Decode does under the rules, and builds nothing, so that a large
// document costs little more than its bytes. An error is an *Error.
func Check(data []byte, rules Rules) error {
	r := &reader{data: data, rules: rules}
	_, err := r.document()
	return err
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
