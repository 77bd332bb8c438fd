package contract

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// kinds is a set of JSON types. integer is a kind of its own, within number.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBoolean
	kindInteger
	kindNumber
	kindString
	kindArray
	kindObject
)

// kindNames holds JSON Schema's names in the order of the bits.
var kindNames = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// aliases are the standard's short names.
var aliases = map[string]string{
	"int": "integer", "float": "number", "bool": "boolean", "dict": "object",
	"list": "array",
}

func kindNamed(name string) (kinds, bool) {
	if full, ok := aliases[name]; ok {
		name = full
	}
	i := slices.Index(kindNames, name)
	if i < 0 {
		return 0, false
	}
	return 1 << i, true
}

func (k kinds) names() []string {
	var names []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (k kinds) String() string { return strings.Join(k.names(), " or ") }

// allows reports whether a value of kind k fits into the set; the empty set allows all.
func (k kinds) allows(v kinds) bool {
	return k == 0 || k&v != 0 || v == kindInteger && k&kindNumber != 0
}

func kindOf(v any) kinds {
	switch v := v.(type) {
	case nil:
		return kindNull
	case bool:
		return kindBoolean
	case string:
		return kindString
	case []any:
		return kindArray
	case map[string]any:
		return kindObject
	case json.Number:
		if strictjson.IsInteger(v) {
			return kindInteger
		}
	}
	return kindNumber
}

func article(noun string) string {
	if noun == "null" {
		return noun
	}
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
