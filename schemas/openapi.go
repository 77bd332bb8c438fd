package schemas

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed openapi.json
var openAPI []byte

// bundled are the schemas that openapi.json refers to.
var bundled = regexp.MustCompile(`"(\w+)": \{ "\$ref": "(\w+)\.schema\.json" \}`)

// OpenAPI returns the description of the HTTP API in one piece: the schemas that it refers to
// stand in it. It is OpenAPI 3.0, which every generator of clients reads. A version of the
// program may be given, or "".
func OpenAPI(version string) []byte {
	doc := whole()
	if version != "" {
		doc = bytes.Replace(doc, []byte(`"version": "0.0.0"`), []byte(`"version": `+strconv.Quote(version)), 1)
	}
	return doc
}

// formats has a generated type hold the largest number of its kind: without, some take 32 bits.
var formats = strings.NewReplacer(
	`"type": "integer"`, `"type": "integer", "format": "int64"`,
	`"type": "number"`, `"type": "number", "format": "double"`,
)

var whole = sync.OnceValue(func() []byte {
	doc := bundled.ReplaceAllFunc(openAPI, func(reference []byte) []byte {
		names := bundled.FindSubmatch(reference)
		return components(string(names[1]), must(string(names[2])))
	})
	return []byte(formats.Replace(string(doc)))
})

// components are the members of components/schemas that a schema becomes: itself, and its definitions.
func components(title string, raw []byte) []byte {
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		panic("schemas: " + err.Error())
	}
	made := component{title, map[string]any{}}
	made.add("", schema)
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("    ", "  ")
	_ = out.Encode(made.parts) // it was JSON
	members := bytes.TrimSpace(text.Bytes())
	return bytes.TrimSpace(members[1 : len(members)-1])
}
