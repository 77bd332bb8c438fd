package strictjson

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// text reads a string; without keep it returns "".
func (r *reader) text(keep bool) (string, error) {
	start, escaped := r.pos, false
	for r.pos++; r.pos < len(r.data); r.pos++ {
		switch c := r.data[r.pos]; {
		case c == '"':
			r.pos++
			return r.unquote(start, escaped, keep)
		case c < 0x20:
			return "", r.fail(Syntax, r.pos, "there is a control character in a string").
				withHint(`write a line break as \n, a tab as \t`)
		case c == '\\':
			escaped = true
			if err := r.escape(); err != nil {
				err.Start = start
				return "", err
			}
		}
	}
	return "", r.fail(Syntax, start, "the string that starts here has no end")
}

func (r *reader) unquote(start int, escaped, keep bool) (string, error) {
	text := r.data[start:r.pos]
	if !keep {
		return "", nil
	}
	if !escaped {
		return string(text[1 : len(text)-1]), nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return "", r.fail(Syntax, start, "the string that starts here is not valid JSON")
	}
	return s, nil
}

// escape checks the escape at pos and stops on its last byte.
func (r *reader) escape() *Error {
	at := r.pos
	r.pos++
	if r.pos < len(r.data) && r.data[r.pos] != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), r.data[r.pos]) < 0 {
			return r.fail(Syntax, at, "the escape in this string is unknown").
				withHint(`a backslash itself is written \\`)
		}
		return nil
	}
	high, ok := r.hex4(at)
	if !ok {
		return r.fail(Syntax, at, `\u needs four hexadecimal digits`)
	}
	r.pos = at + 5
	if high < 0xd800 || high > 0xdfff || r.rules.Ambiguous {
		return nil
	}
	// Half a character: Go would replace it and Python would keep it, so the two
	// sides would see different strings.
	low, ok := r.hex4(at + 6)
	if !ok || high > 0xdbff || low < 0xdc00 || low > 0xdfff {
		return r.fail(HalfSurrogate, at, "there is half a surrogate pair in a string")
	}
	r.pos = at + 11
	return nil
}

// hex4 reads \uXXXX at the given place.
func (r *reader) hex4(at int) (uint64, bool) {
	if at+6 > len(r.data) || r.data[at] != '\\' || r.data[at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(r.data[at+2:at+6]), 16, 16)
	return n, err == nil
}
