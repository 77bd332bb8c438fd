package contract

import (
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// draft is a version of JSON Schema. Contracts that declare none are read as draft-07
// that has the newer keywords as well: generators often leave "$schema" out.
type draft uint8

const (
	undeclared draft = iota
	draft4
	draft6
	draft7
	draft2019
	draft2020
)

var draftNames = []string{"", "draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"}

var draftURI = lazyregexp.New(`^https?://json-schema\.org/(draft-0[467]|draft/2019-09|draft/2020-12)/schema#?$`)

func draftNamed(uri string) (draft, bool) {
	match := draftURI().FindStringSubmatch(uri)
	if match == nil {
		return undeclared, false
	}
	return draft(slices.Index(draftNames, match[1])), true //nolint:gosec // there are six
}

// String is the name of the draft as it reads in a sentence.
func (d draft) String() string {
	if d == undeclared {
		d = draft7
	}
	return strings.ReplaceAll(draftNames[d], "/", " ")
}

// declare notes the draft of the document, or of one of its sides.
func (c *compiler) declare(v any, pointer string) {
	m, _ := v.(map[string]any)
	uri, _ := m["$schema"].(string)
	if d, ok := draftNamed(uri); ok {
		c.drafts[pointer] = d
	}
}

// side returns the pointer of the side in which a place lies, "" for none.
func (c *compiler) side(pointer string) string {
	for _, side := range []string{"/input", "/output"} {
		if c.rootless && (pointer == side || strings.HasPrefix(pointer, side+"/")) {
			return side
		}
	}
	return ""
}

// draftAt is the draft that holds at a place.
func (c *compiler) draftAt(pointer string) draft {
	if d, ok := c.drafts[c.side(pointer)]; ok {
		return d
	}
	return c.drafts[""]
}

// newerKeywords are those of later drafts that can be translated, with the draft that
// brought them and what earlier ones have for it.
var newerKeywords = map[string]struct {
	since draft
	hint  string
}{
	"prefixItems":       {draft2020, `write the list as "items": [...] and what follows it as "additionalItems"`},
	"dependentRequired": {draft2019, `write "dependencies": {"field": ["other"]}`},
	"dependentSchemas":  {draft2019, `write "dependencies": {"field": {...}}`},
	"minContains":       {draft2019, `write "contains", which asks for one at least, or "minItems"`},
	"maxContains":       {draft2019, `write "contains" or "maxItems"`},
}

// untranslatable are keywords that draft-07 has nothing for.
var untranslatable = map[string]string{
	"unevaluatedProperties": `write all properties in one schema with "additionalProperties"`,
	"unevaluatedItems":      `write "additionalItems", or "items" beside "prefixItems"`,
	"$dynamicRef":           `write "$ref": "#/definitions/name"`,
	"$recursiveRef":         `write "$ref": "#/definitions/name"`,
	"$dynamicAnchor":        `put the schema under "definitions"`,
	"$recursiveAnchor":      `put the schema under "definitions"`,
	"$anchor":               `put the schema under "definitions" and write "$ref": "#/definitions/name"`,
}

// tooNew refuses a keyword that the draft doesn't know, or that can't be translated.
func (c *compiler) tooNew(n *node, key, at string) bool {
	d := c.draftAt(n.pointer)
	hint, refused := untranslatable[key]
	if refused && d >= draft2019 {
		c.fail(at, hint, "contracts are held to draft-07, which has nothing for %q", key)
		return true
	}
	if newer, ok := newerKeywords[key]; ok && d != undeclared && d < newer.since {
		hint, refused = newer.hint, true
	}
	if refused {
		c.fail(at, hint, "%s does not know %q and would ignore it", d, key)
	}
	return refused
}
