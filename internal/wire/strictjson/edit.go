package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
)

// ErrNotObject says that a path leads through a value that isn't an object.
var ErrNotObject = errors.New("no object")

// LineAt returns the line, from 1, of what a path of names leads to in a text, or of the
// nearest thing around it that is there. The text must have been checked.
func LineAt(document []byte, path []string) int {
	start := 0 // of the value that the path has come to
	for _, wanted := range path {
		value := document[start:]
		found := false
		for name, text := range Members(value) {
			if name == wanted {
				start += cap(value) - cap(text) // text is a part of value
				found = true
				break
			}
		}
		if !found {
			break
		}
	}
	return bytes.Count(document[:start], []byte("\n")) + 1
}

// Set returns a copy of an object's text in which the field at the path has the value. A
// field that is there keeps its place; objects on the way are made where they are
// missing. All else keeps its order and its numbers. The path has one part at least. The
// error is ErrNotObject.
func Set(object []byte, path []string, value []byte) ([]byte, error) {
	if !isObject(object) {
		return nil, ErrNotObject
	}
	var b bytes.Buffer
	found := false
	for name, old := range Members(object) {
		if name == path[0] {
			found = true
			inner, err := setBelow(old, path[1:], value)
			if err != nil {
				return nil, err
			}
			old = inner
		}
		appendMember(&b, name, old)
	}
	if !found {
		inner, err := setBelow([]byte("{}"), path[1:], value)
		if err != nil {
			return nil, err
		}
		appendMember(&b, path[0], inner)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func setBelow(old []byte, path []string, value []byte) ([]byte, error) {
	if len(path) == 0 {
		return value, nil
	}
	return Set(old, path, value)
}

func appendMember(b *bytes.Buffer, name string, value []byte) {
	separator := byte(',')
	if b.Len() == 0 {
		separator = '{'
	}
	b.WriteByte(separator)
	key, _ := Encode(name) // a string can be written
	b.Write(key)
	b.WriteByte(':')
	b.Write(value)
}

func isObject(text []byte) bool {
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{'
}

// Encode writes a Go value as encoding/json does: compact, names sorted, but "<", ">"
// and "&" as they are.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
