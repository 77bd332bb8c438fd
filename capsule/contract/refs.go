package contract

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// refer makes n what its reference says; beside other keywords both hold.
func (c *compiler) refer(n *node, ref any) {
	at := n.pointer + "/$ref"
	text, ok := wants[string](c, ref, at, "a string", `"#/definitions/name"`)
	if !ok {
		return
	}
	pointer, value, ok := c.resolve(text, at)
	if !ok {
		return
	}
	c.targets[at] = pointer
	target := c.schema(value, pointer)
	if len(n.form) == 0 {
		n.one["$ref"], n.form["$ref"] = target, "#/$defs/"+target.name()
		return
	}
	n.many["allOf"] = append(n.many["allOf"], target)
}

const localRefHint = `copy the schema into "definitions" and refer to it as "#/definitions/name"`

// local reads a reference as a path in this document.
func (c *compiler) local(ref, at string) (path []string, ok bool) {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		c.fail(at, localRefHint, "%s refers to another document; nothing is ever fetched or read", quote(ref))
		return nil, false
	}
	pointer, err := url.PathUnescape(fragment)
	if err != nil || pointer != "" && pointer[0] != '/' {
		c.fail(at, localRefHint, "%s is no JSON pointer", quote(ref))
		return nil, false
	}
	return strictjson.Path(pointer), true
}

// resolve finds what a reference means, and nowhere but in this document.
func (c *compiler) resolve(ref, at string) (pointer string, value any, ok bool) {
	tokens, ok := c.local(ref, at)
	if !ok {
		return "", nil, false
	}
	for _, base := range c.bases(at) {
		path := append(slices.Clone(base), tokens...)
		if len(path) == 0 && c.rootless {
			c.fail(at, `write "#/input" or "#/output"`, `"#" is the whole of schema.json, which is no schema itself`)
			return "", nil, false
		}
		if value, ok = strictjson.Lookup(c.document, path); ok {
			return exactPointer(path), value, true
		}
	}
	c.fail(at, `references start at the top of the document, such as "#/definitions/name"`,
		"%s refers to something that isn't there", quote(ref))
	return "", nil, false
}

// bases are where references at a place may start: at the top of the document, and in a
// schema.json also at the side that they stand in, as what a generator wrote has it. A
// side that declares its draft is a document of its own first.
func (c *compiler) bases(at string) [][]string {
	side := c.side(at)
	if side == "" {
		return [][]string{nil}
	}
	own := []string{side[1:]}
	if _, declared := c.drafts[side]; declared {
		return [][]string{own, nil}
	}
	return [][]string{nil, own}
}

// exactPointer is strictjson.Pointer without its limit: two places are never one.
func exactPointer(path []string) string {
	var b strings.Builder
	for _, token := range path {
		fmt.Fprintf(&b, "/%s", strictjson.Escape(token))
	}
	return b.String()
}
