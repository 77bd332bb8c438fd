package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestMetadataIsBounded(t *testing.T) {
	many := map[string]string{}
	for i := range MaxMetadata + 1 {
		many["k"+strings.Repeat("x", i)] = "v"
	}
	const canary = "canary"
	for name, bad := range map[string]map[string]string{
		"too many":                 {},
		"an empty key":             {"": canary},
		"a key in capitals":        {"Canary": canary},
		"a key with a line end":    {"canary\n": canary},
		"a key that is too long":   {strings.Repeat("k", 41): canary},
		"an empty value":           {"k": ""},
		"a value that is too long": {"k": canary + strings.Repeat("v", 195)},
		"a control character":      {"k": canary + "\x1b"},
		"a line end":               {"k": canary + "\u0085"},
		"no UTF-8":                 {"k": canary + "\xff"},
	} {
		if len(bad) == 0 {
			bad = many
		}
		err := CheckMetadata(bad)
		text, _ := json.Marshal(fault.Public(err))
		if !fault.Is(err, fault.Input) || strings.Contains(strings.ToLower(string(text)), canary) {
			t.Errorf("%s: %v %s", name, err, text)
		}
	}
	for _, good := range []map[string]string{nil, {"a": "1"}, {strings.Repeat("k", 40): strings.Repeat("é", 100)}, {"a_1": "any text: \"<>\""}} {
		if err := CheckMetadata(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
}
