package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// A comparison tells no more than this many differences, each value cut to fault.MaxQuoted.
const maxDiffLines = 50

// DiffJSON says for a person how a result differs from what was wanted: a line for each
// difference, "/rows: want 3, got 4", keys in alphabetical order, list items in theirs.
// It returns nil when nothing differs. Numbers are equal by value: 1, 1.0 and 1e0. With
// subset, objects may hold keys that aren't wanted; lists must still be of one length.
// There are at most 51 lines, the last of which counts the rest.
func DiffJSON(want, got json.RawMessage, subset bool) []string {
	w, err := decodeAny(want)
	if err != nil {
		return []string{"what is wanted isn't JSON: " + fault.Clip(err.Error(), fault.MaxQuoted)}
	}
	g, err := decodeAny(got)
	if err != nil {
		return []string{"the result isn't JSON: " + fault.Clip(err.Error(), fault.MaxQuoted)}
	}
	d := differ{subset: subset}
	d.compare("", w, g)
	if d.more > 0 {
		d.lines = append(d.lines, fmt.Sprintf("and %d more differences", d.more))
	}
	return d.lines
}

// decodeAny reads one JSON value; numbers keep the text that they were written in.
func decodeAny(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return v, nil
}

type differ struct {
	subset bool
	lines  []string
	more   int
}

func (d *differ) differs(pointer, format string, args ...any) {
	if len(d.lines) == maxDiffLines {
		d.more++
		return
	}
	if pointer == "" {
		pointer = "(root)"
	}
	d.lines = append(d.lines, fault.Clip(pointer, 4*fault.MaxQuoted)+": "+fmt.Sprintf(format, args...))
}

func (d *differ) compare(pointer string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			d.objects(pointer, w, g)
			return
		}
	case []any:
		if g, ok := got.([]any); ok {
			d.lists(pointer, w, g)
			return
		}
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return
		}
	default: // string, bool, nil
		switch got.(type) {
		case map[string]any, []any: // not comparable with ==
		default:
			if want == got {
				return
			}
		}
	}
	d.differs(pointer, "want %s, got %s", show(want), show(got))
}

func (d *differ) objects(pointer string, want, got map[string]any) {
	keys := slices.Collect(maps.Keys(want))
	for key := range got {
		if _, both := want[key]; !both && !d.subset {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		at := pointer + "/" + strictjson.Escape(key)
		w, wanted := want[key]
		g, given := got[key]
		switch {
		case !given:
			d.differs(at, "want %s, got nothing", show(w))
		case !wanted:
			d.differs(at, "want nothing, got %s", show(g))
		default:
			d.compare(at, w, g)
		}
	}
}

func (d *differ) lists(pointer string, want, got []any) {
	if len(want) != len(got) {
		d.differs(pointer, "want %d items, got %d", len(want), len(got))
	}
	for i := range min(len(want), len(got)) {
		d.compare(pointer+"/"+strconv.Itoa(i), want[i], got[i])
	}
}

// show writes a value as JSON, cut to a length that fits a line.
func show(v any) string {
	text, err := strictjson.Encode(v)
	if err != nil {
		return "?"
	}
	return fault.Clip(string(text), fault.MaxQuoted)
}

// sameNumber compares two JSON numbers by value without computing either: a number of
// ten characters can have a million digits.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, okX := parseDecimal(string(a))
	y, okY := parseDecimal(string(b))
	return okX && okY && x == y
}

// decimal is a number as 0.digits × 10^exponent; there is one way to write each.
type decimal struct {
	negative bool
	digits   string // without zeros at either end; "" is zero
	exponent int64
}

// parseDecimal reads a JSON number. It is not ok when the exponent is beyond all sense.
func parseDecimal(s string) (decimal, bool) {
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.ParseInt(s[i+1:], 10, 32)
		if err != nil {
			return d, false
		}
		s, d.exponent = s[:i], e
	}
	whole, fraction, _ := strings.Cut(s, ".")
	digits := whole + fraction
	significant := strings.TrimLeft(digits, "0")
	d.exponent += int64(len(whole) - (len(digits) - len(significant)))
	if d.digits = strings.TrimRight(significant, "0"); d.digits == "" {
		return decimal{}, true // zero has no sign and no exponent
	}
	return d, true
}
