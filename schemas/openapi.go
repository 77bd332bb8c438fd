package schemas

import (
	"bytes"
	_ "embed"
	"regexp"
	"strconv"
)

//go:embed openapi.json
var openAPI []byte

// bundled are the schemas that openapi.json refers to, by their names in it.
var bundled = map[string]string{
	"Run": "run", "Problem": "problem", "Submission": "submission", "Unit": "unit", "Event": "event", "Page": "page",
	"Pool": "pool", "Stats": "stats",
	"Schedule": "schedule", "ScheduleSpec": "schedulespec",
}

// identity is what a schema says of itself where it stands alone.
var identity = regexp.MustCompile(`(?m)^  "\$(schema|id)": .*\n`)

// OpenAPI returns the description of the HTTP API (OpenAPI 3.1) in one piece: the
// schemas that it refers to stand in it. A version of the program may be given, or "".
func OpenAPI(version string) []byte {
	doc := openAPI
	for title, name := range bundled {
		reference := []byte(`"` + title + `": { "$ref": "` + name + `.schema.json" }`)
		doc = bytes.Replace(doc, reference, append([]byte(`"`+title+`": `), component(title, name)...), 1)
	}
	if version != "" {
		doc = bytes.Replace(doc, []byte(`"version": "0.0.0"`), []byte(`"version": `+strconv.Quote(version)), 1)
	}
	return doc
}

// component makes a part of the document of a schema: its references go through the
// document then.
func component(title, name string) []byte {
	schema := identity.ReplaceAll(bytes.TrimSpace(must(name)), nil)
	return bytes.ReplaceAll(schema, []byte(`"$ref": "#/`), []byte(`"$ref": "#/components/schemas/`+title+`/`))
}
