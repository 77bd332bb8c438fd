package agents

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// redact removes from an Input fault every text that comes from the inputs. Names of fields
// are data too where a contract leaves them open (section "PHI-safe logging rules"). The name
// of the unit and the texts of its contract stay.
func redact(err error, unit string, schema []byte) error {
	var refused *fault.Error
	if !errors.As(err, &refused) || refused.Kind != fault.Input {
		return err
	}
	known := wordsOf(schema)
	known.add(unit)
	told := refused.Without(known.quoted)
	for i, f := range told.Findings {
		told.Findings[i].Pointer = known.pointer(f.Pointer)
	}
	return told
}

// words are the texts that an error may show.
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

// unknownPart stands for a name that is removed.
const unknownPart = "*"

// pointer returns a JSON pointer (RFC 6901) in which unknown names are replaced. Indexes stay.
func (w words) pointer(pointer string) string {
	parts := strings.Split(pointer, "/")
	for i, part := range parts[1:] {
		if _, err := strconv.ParseUint(part, 10, 31); err != nil && !w[strictjson.Unescape(part)] {
			parts[i+1] = unknownPart
		}
	}
	return strings.Join(parts, "/")
}

// quoted reports whether an error may show a quoted text.
func (w words) quoted(text string) bool {
	plain, err := strconv.Unquote(text)
	return err == nil && w[plain]
}
