package strictjson

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

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
	text := string(r.data[start:r.pos])
	if !isNumber(text) {
		return nil, r.fail(Syntax, start, "this is not a number as JSON writes it")
	}
	if !r.rules.Ambiguous && !r.fitsDouble(text) {
		return nil, r.fail(NumberOutOfRange, start, "a number is too large").withHint("numbers reach from -1.8e308 to 1.8e308; send larger ones as strings")
	}
	if !r.build {
		return nil, nil //nolint:nilnil // nothing is built
	}
	return json.Number(text), nil
}

// isNumber checks JSON's grammar: -? int frac? exp?
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	digits := leadingDigits(s)
	if digits == 0 || digits > 1 && s[0] == '0' {
		return false
	}
	s = s[digits:]
	if rest, ok := strings.CutPrefix(s, "."); ok {
		digits = leadingDigits(rest)
		if digits == 0 {
			return false
		}
		s = rest[digits:]
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return s != "" && leadingDigits(s) == len(s)
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func (r *reader) fitsDouble(text string) bool {
	e := strings.IndexAny(text, "eE")
	if e < 0 && len(text) < 300 {
		return true
	}
	if e >= 0 && !r.rules.Unbounded {
		exponent, err := strconv.Atoi(text[e+1:])
		if err != nil || exponent > maxExponent || exponent < -maxExponent {
			return false
		}
	}
	_, err := strconv.ParseFloat(text, 64)
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
