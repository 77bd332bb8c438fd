package strictjson

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// text reads a string; without keep it returns "".
func (r *reader) text(keep bool) (string, error) {
	start, escaped := r.pos, false
	for r.pos++; r.pos < len(r.data); r.pos++ {
		r.pos += plainBytes(r.data[r.pos:])
		if r.pos == len(r.data) {
			break
		}
		switch r.data[r.pos] {
		case '"':
			r.pos++
			return r.unquote(start, escaped, keep)
		case '\\':
			escaped = true
			if err := r.escape(); err != nil {
				err.Start = start
				return "", err
			}
		default:
			return "", r.fail(Syntax, r.pos, "there is a control character in a string").
				withHint(`write a line break as \n, a tab as \t`)
		}
	}
	return "", r.fail(Syntax, start, "the string that starts here has no end")
}

// plainBytes returns how many bytes of a string come before its end, an escape or a control character.
func plainBytes(data []byte) int {
	for i, c := range data {
		if c < 0x20 || c == '"' || c == '\\' {
			return i
		}
	}
	return len(data)
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

// number reads a number within bounds that every reader of ours can hold: giant
// exponents take seconds to compare and overflow a double.
func (r *reader) number() (any, error) {
	start := r.pos
	for r.pos < len(r.data) && strings.IndexByte("+-.eE0123456789", r.data[r.pos]) >= 0 {
		r.pos++
	}
	if r.pos-start > MaxNumberBytes && !r.rules.Unbounded {
		return nil, r.fail(TooLong, start, "a number has more than %d digits", MaxNumberBytes)
	}
	text := r.data[start:r.pos]
	if !json.Valid(text) {
		return nil, r.fail(Syntax, start, "this is not a number as JSON writes it")
	}
	if !r.rules.Ambiguous && !r.fitsDouble(text) {
		return nil, r.fail(NumberOutOfRange, start, "a number is too large").
			withHint("numbers reach from -1.8e308 to 1.8e308; send larger ones as strings")
	}
	if !r.build {
		return nil, nil //nolint:nilnil // nothing is built
	}
	return json.Number(text), nil
}

func (r *reader) fitsDouble(text []byte) bool {
	e := bytes.IndexAny(text, "eE")
	if e < 0 && len(text) < 300 {
		return true
	}
	if e >= 0 && !r.rules.Unbounded {
		exponent, err := strconv.Atoi(string(text[e+1:]))
		if err != nil || exponent > maxExponent || exponent < -maxExponent {
			return false
		}
	}
	_, err := strconv.ParseFloat(string(text), 64)
	return err == nil
}

// IsInteger reports whether a number that Decode returned is whole, as JSON Schema has
// it: 1.0 and 1e3 are.
func IsInteger(n json.Number) bool {
	if !strings.ContainsAny(string(n), "eE") {
		_, fraction, _ := strings.Cut(string(n), ".")
		return strings.Trim(fraction, "0") == ""
	}
	rat, ok := new(big.Rat).SetString(string(n))
	return ok && rat.IsInt()
}
