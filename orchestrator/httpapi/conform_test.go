package httpapi

import (
	"bufio"
	"encoding/json"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/xeipuuv/gojsonschema"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// conforms holds an answer against the document: its status, headers, type and body.
func conforms(t testing.TB, r *http.Request, a answer) {
	t.Helper()
	op, path := operationOf(r)
	if path == "" || a.StatusCode == http.StatusMethodNotAllowed {
		return
	}
	where := r.Method + " " + path + " " + strconv.Itoa(a.StatusCode)
	documented, ok := op.Responses[strconv.Itoa(a.StatusCode)]
	if !ok {
		t.Errorf("%s is not in the document: %s", where, a.body)
		return
	}
	if name, ok := strings.CutPrefix(documented.Ref, "#/components/responses/"); ok {
		documented = theDocument().Components.Responses[name]
	}
	for header := range documented.Headers {
		refusal := header == "AOD-Run" && strings.Contains(a.body, `"ok":false`) // before there was a run
		if a.Header.Get(header) == "" && header != "Idempotent-Replayed" && !refusal {
			t.Errorf("%s has no header %s", where, header)
		}
	}
	media, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	content, ok := documented.Content[media]
	if !ok && !strings.HasSuffix(path, "/files/{name}") && len(documented.Content) > 0 {
		t.Errorf("%s: the document has no %q", where, media)
	}
	schema := content.Schema
	if content.Item != nil {
		schema = content.Item
	}
	for _, v := range jsonValues(t, media, a.body) {
		for _, problem := range violations(schema, v) {
			t.Errorf("%s: %s in %s", where, problem, a.body)
		}
	}
}

// operationOf finds what the document says of a request: a path without parameters is meant before others.
func operationOf(r *http.Request) (operation, string) {
	if op, ok := theDocument().Paths[r.URL.EscapedPath()][strings.ToLower(r.Method)]; ok {
		return op, r.URL.EscapedPath()
	}
	for path, operations := range theDocument().Paths {
		pattern := regexp.QuoteMeta(path)
		pattern = strings.ReplaceAll(pattern, `files/\{name\}`, `files/.+`)
		pattern = regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(pattern, `[^/]+`)
		op, ok := operations[strings.ToLower(r.Method)]
		if ok && regexp.MustCompile("^"+pattern+"$").MatchString(r.URL.EscapedPath()) {
			return op, path
		}
	}
	return operation{}, ""
}

// jsonValues are the JSON documents in a body of that type.
func jsonValues(t testing.TB, media, body string) []any {
	t.Helper()
	var texts []string
	switch media {
	case "application/json", httpwire.TypeProblem:
		texts = []string{body}
	case ndjson:
		texts = slices.Collect(strings.Lines(body))
	case "text/event-stream":
		for _, e := range readEvents(t, body) {
			raw, err := json.Marshal(e)
			must(t, err)
			texts = append(texts, string(raw))
		}
	}
	var values []any
	for _, text := range texts {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Errorf("%v in %q", err, text)
		}
		values = append(values, v)
	}
	return values
}

// sent is a server-sent event.
type sent struct {
	ID    int64           `json:"id"`
	Event string          `json:"event"`
	Data  json.RawMessage `json:"data"`
}

func readEvents(t testing.TB, body string) []sent {
	t.Helper()
	var events []sent
	var e sent
	lines := bufio.NewScanner(strings.NewReader(body))
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.ID, _ = strconv.ParseInt(value, 10, 64)
		case "event":
			e.Event = value
		case "data":
			e.Data = json.RawMessage(value)
			if e.ID > 0 { // what began in the middle isn't an event
				events = append(events, e)
			}
			e = sent{}
		}
	}
	return events
}

// compiled are schemas of the document by their JSON: each takes far longer than what it is for.
var compiled sync.Map

func compile(schema any) (*gojsonschema.Schema, error) {
	key, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	if known, ok := compiled.Load(string(key)); ok {
		return known.(*gojsonschema.Schema), nil
	}
	root := map[string]any{"allOf": []any{inDraft07(schema)}, "components": theDocument().inDraft07}
	made, err := gojsonschema.NewSchema(gojsonschema.NewGoLoader(root))
	if err == nil {
		compiled.Store(string(key), made)
	}
	return made, err
}

// inDraft07 says schemas of OpenAPI 3.0 in the words of the validator: nullable and a bound that is
// exclusive are words of their own in it.
func inDraft07(v any) any {
	switch v := v.(type) {
	case []any:
		said := make([]any, len(v))
		for i, e := range v {
			said[i] = inDraft07(e)
		}
		return said
	case map[string]any:
		said := map[string]any{}
		for key, e := range v {
			said[key] = inDraft07(e)
		}
		if said["exclusiveMinimum"] == true {
			said["exclusiveMinimum"] = said["minimum"]
		}
		if said["nullable"] == true {
			delete(said, "nullable")
			return map[string]any{"anyOf": []any{said, map[string]any{"type": "null"}}}
		}
		return said
	}
	return v
}

func violations(schema, v any) []string {
	whole, err := compile(schema)
	if err != nil {
		return []string{err.Error()}
	}
	result, err := whole.Validate(gojsonschema.NewGoLoader(v))
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, e := range result.Errors() {
		found = append(found, e.String())
	}
	return found
}
