package jsonrpc

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

var null = []byte("null")

// carrying begins a text that holds an id.
const carrying = "aod-id:"

// Carry returns a text, as JSON, that holds the bytes of an id.
func Carry(id []byte) []byte {
	text, _ := strictjson.Encode(carrying + string(id)) // a text can be written
	return text
}

// carriedBy returns the id that a text holds; nil: none.
func carriedBy(value []byte) []byte {
	id, carries := strings.CutPrefix(strictjson.Text(value), carrying)
	if !carries || !IsID([]byte(id)) {
		return nil
	}
	return []byte(id)
}

// IsID reports whether a value, as JSON, is an id: a text, null, or a number without a fraction, however it is
// written.
func IsID(value []byte) bool {
	if len(value) == 0 || value[0] == '"' || bytes.Equal(value, null) {
		return len(value) > 0
	}
	_, whole := numberOf(value)
	return whole
}

// Key is the same for ids that say the same: 1, 1.0 and 10e-1, or "a" and "\u0061".
func Key(id []byte) string {
	if n, whole := numberOf(id); whole {
		return n.plain()
	}
	if len(id) > 0 && id[0] == '"' {
		return strconv.Quote(strictjson.Text(id))
	}
	return string(id)
}

// number is a whole number: digits without zeros at their ends, and how many zeros follow.
type number struct {
	sign, digits string
	zeros        int
}

// numberOf reads the text of a number. It reports false for one with a fraction, and for what is none.
func numberOf(text []byte) (n number, whole bool) {
	if len(text) == 0 || len(text) > strictjson.MaxNumberBytes || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return n, false
	}
	rest := strings.ToLower(string(text))
	rest, negative := strings.CutPrefix(rest, "-")
	rest, exponent, _ := strings.Cut(rest, "e")
	before, after, _ := strings.Cut(rest, ".")
	if exponent != "" {
		var err error
		if n.zeros, err = strconv.Atoi(exponent); err != nil {
			return n, false
		}
	}
	n.digits = strings.TrimRight(before+after, "0")
	n.zeros += len(before) - len(n.digits)
	n.digits = strings.TrimLeft(n.digits, "0")
	if n.digits == "" {
		return number{digits: "0"}, true
	}
	if negative {
		n.sign = "-"
	}
	return n, n.zeros >= 0
}

// plain writes a number with its zeros, or with an exponent where these are many.
func (n number) plain() string {
	const most = 18 // digits of an int64
	if n.zeros > most {
		return n.sign + n.digits + "e" + strconv.Itoa(n.zeros)
	}
	return n.sign + n.digits + strings.Repeat("0", n.zeros)
}
