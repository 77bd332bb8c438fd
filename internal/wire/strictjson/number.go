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
	if !json.Valid(r.data[start:r.pos]) {
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
