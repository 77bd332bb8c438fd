package httpapi

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/fault"
)

// discreet takes out of an Input fault what only the inputs have: names of fields are data
// too where a contract leaves them open (section "PHI-safe logging rules"). The unit's name
// and what stands in its contract are no secrets, and stay.
func discreet(err error, unit string, schema []byte) error {
	var refused *fault.Error
	if !errors.As(err, &refused) || refused.Kind != fault.Input {
		return err
	}
	known := wordsOf(schema)
	known.add(unit)
	told := *refused
	told.Msg, told.Hint = known.text(told.Msg), known.text(told.Hint)
	told.Findings = make([]fault.Finding, len(refused.Findings))
	for i, f := range refused.Findings {
		f.Pointer, f.Message, f.Hint = known.pointer(f.Pointer), known.text(f.Message), known.text(f.Hint)
		told.Findings[i] = f
	}
	return &told
}

// words are texts that anybody may know.
type words map[string]bool

// wordsOf collects every name and text of a contract.
func wordsOf(schema []byte) words {
	var document any
	_ = json.Unmarshal(schema, &document) // what can't be read has no words
	known := words{}
	known.add(document)
	return known
}

func (w words) add(v any) {
	switch v := v.(type) {
	case string:
		w[v] = true
	case []any:
		for _, inner := range v {
			w.add(inner)
		}
	case map[string]any:
		for name, inner := range v {
			w[name] = true
			w.add(inner)
		}
	}
}

// unknownPart stands for a name that isn't told.
const unknownPart = "*"

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// pointer returns a JSON pointer (RFC 6901) with the parts that are known, and the indexes.
func (w words) pointer(pointer string) string {
	parts := strings.Split(pointer, "/")
	for i, part := range parts[1:] {
		if _, err := strconv.ParseUint(part, 10, 31); err != nil && !w[unescape.Replace(part)] {
			parts[i+1] = unknownPart
		}
	}
	return strings.Join(parts, "/")
}

var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// text returns a message without the quoted texts that aren't known.
func (w words) text(message string) string {
	return quotedText.ReplaceAllStringFunc(message, func(quoted string) string {
		if plain, err := strconv.Unquote(quoted); err == nil && w[plain] {
			return quoted
		}
		return strconv.Quote(unknownPart)
	})
}
