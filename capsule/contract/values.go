package contract

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/xeipuuv/gojsonschema"
)

// FilePath is the format of a string that names a file.
const FilePath = "file_path"

func (c *compiler) types(n *node, key string, v any, at string) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) == 0 {
		c.fail(at, "name a type, or remove the keyword", "the list of types is empty")
	}
	for _, e := range list {
		name, ok := wants[string](c, e, at, "the name of a type", `"string"`)
		if !ok {
			continue
		}
		kind, ok := kindNamed(name)
		if !ok {
			c.fail(at, typeHint(name), "%s is no type; there are %s, and for short int, float, bool, dict, list",
				quote(name), strings.Join(kindNames, ", "))
		}
		n.types |= kind
	}
	n.form[key] = anys(n.types.names())
}

// strangers are names of types that are none, and what is meant.
var strangers = map[string]string{
	"file":   `a file is "type": "string", "format": "file_path"`,
	"path":   `a file is "type": "string", "format": "file_path"`,
	FilePath: `a file is "type": "string", "format": "file_path"`,
	"str":    `write "string"`, "text": `write "string"`,
	"None": `write "null"`, "none": `write "null"`, "nil": `write "null"`,
}

func typeHint(name string) string {
	if hint, ok := strangers[name]; ok {
		return hint
	}
	if near := nearest(name, append(sorted(aliases), kindNames...)); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "use one of them"
}

func (c *compiler) format(n *node, key string, v any, at string) {
	name, ok := wants[string](c, v, at, "the name of a format", `"date"`)
	switch {
	case !ok:
	case name == FilePath:
		n.filePath = true
	case gojsonschema.FormatCheckers.Has(name):
		n.form[key] = name
		n.perStep = formatBytes(name)
	case nearest(strings.NewReplacer("-", "_", " ", "_").Replace(name), []string{FilePath, "file"}) != "":
		c.warn(at, `did you mean "file_path"?`, "the format %s is not known and is not checked", quote(name))
	default:
		c.warn(at,
			`the formats that are checked are file_path, date, time, date-time, email, hostname, ipv4, ipv6, uri, `+
				`uuid, regex, json-pointer`, "the format %s is not known and is not checked", quote(name))
	}
}

func (c *compiler) enum(n *node, key string, v any, at string) {
	list, ok := wants[[]any](c, v, at, "a list of the allowed values", `["small", "large"]`)
	if !ok {
		return
	}
	if len(list) == 0 {
		c.fail(at, "list the allowed values, or remove the keyword",
			"the list is empty, so that nothing would be allowed")
	}
	seen := map[string]bool{}
	for i, e := range list {
		text := canonical(e)
		if seen[text] {
			c.fail(fmt.Sprintf("%s/%d", at, i), "remove it", "the value stands in the list twice")
		}
		seen[text] = true
		n.quoted += len(text)
	}
	n.compares = true
	n.form[key] = list
}

func (c *compiler) constant(n *node, key string, v any, _ string) {
	n.compares = true
	n.quoted += len(canonical(v))
	n.form[key] = v
}

// canonical writes a value so that equal ones look equal: 1.0 is 1.
func canonical(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	var plain any
	if json.Unmarshal(text, &plain) != nil {
		return string(text)
	}
	text, _ = json.Marshal(plain) // it was just read
	return string(text)
}
