package api

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/schemas"
)

// described are the types that go over the wire, by their names in the document of the HTTP API.
var described = map[string]any{
	"Run": Record{}, "Submission": Submission{}, "Unit": Unit{}, "Page": Page{}, "Pool": PoolStats{}, "A2AStatus": A2AStatus{}, "Stats": Stats{},
	"File": File{}, "LogEntry": LogEntry{}, "StepPage": StepPage{}, "Step": Step{}, "Changes": Changes{}, "FlowState": FlowState{}, "UnitFlow": UnitFlow{},
	"SessionPage": SessionPage{}, "Session": Session{}, "NewSession": NewSession{}, "Message": Message{},
	"Models": struct {
		Models []Model `json:"models"`
	}{},
	"ModelCalls": ModelCallPage{},
	"Pushes": struct {
		Pushes []Push  `json:"pushes"`
		Next   *string `json:"next"`
	}{},
	"WebhookPage": WebhookPage{}, "WebhookRequest": WebhookRequest{}, "WebhookTest": WebhookTest{}, "QuestionPage": QuestionPage{}, "Question": Question{}, "Answer": Answer{}, "MessagePage": MessagePage{}, "SaidMessage": MessageEvent{}, "ArtifactPage": ArtifactPage{}, "Saying": Saying{}, "PruneReport": PruneReport{}, "Worker": Worker{}, "WorkerJoin": WorkerJoin{}, "ModelExchange": ModelExchange{},
}

// Each field of a type is a property of its schema, and the other way round, all the way down.
func TestTheDocumentHasTheFieldsOfTheTypes(t *testing.T) {
	var document map[string]any
	if err := json.Unmarshal(schemas.OpenAPI(""), &document); err != nil {
		t.Fatal(err)
	}
	for name, value := range described {
		t.Run(name, func(t *testing.T) {
			c := comparison{T: t, document: document, seen: map[string]bool{}}
			c.compare(name, reflect.TypeOf(value), map[string]any{"$ref": "#/components/schemas/" + name})
			if len(c.seen) == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// comparison holds types against schemas.
type comparison struct {
	*testing.T
	document map[string]any
	seen     map[string]bool // places of structs that were compared, by their reference
}

func (c comparison) compare(at string, of reflect.Type, schema map[string]any) {
	schema = c.resolve(schema)
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8:
		if items, ok := schema["items"].(map[string]any); ok {
			c.compare(at+"[]", of.Elem(), items)
		}
	case of.Kind() == reflect.Struct && of != reflect.TypeFor[time.Time]():
		c.compareFields(at, of, schema)
	}
}

func (c comparison) compareFields(at string, of reflect.Type, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	if c.seen[of.String()] && strings.Count(at, ".") > 6 { // a type within itself
		return
	}
	c.seen[of.String()] = true
	fields := fieldsOf(of)
	if of == reflect.TypeFor[File]() && !strings.HasPrefix(at, "Run.") {
		delete(fields, "path") // only a command that delivers files says where
	}
	var has, says []string
	for name := range fields {
		has = append(has, name)
	}
	for name := range properties {
		says = append(says, name)
	}
	slices.Sort(has)
	slices.Sort(says)
	if diff := cmp.Diff(has, says); diff != "" {
		c.Errorf("%s: fields of %s (-), and properties of the schema (+):\n%s", at, of, diff)
	}
	for name, field := range fields {
		if property, ok := properties[name].(map[string]any); ok {
			c.compare(at+"."+name, field, property)
		}
	}
}

// fieldsOf are the fields that are written, by their names.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			for name, inner := range fieldsOf(field.Type) {
				fields[name] = inner
			}
		case name != "" && name != "-":
			fields[name] = field.Type
		}
	}
	return fields
}

// resolve follows references, and takes of several forms the one that isn't null.
func (c comparison) resolve(schema map[string]any) map[string]any {
	if ref, ok := schema["$ref"].(string); ok {
		var at any = c.document
		for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			object, _ := at.(map[string]any)
			at = object[part]
		}
		found, ok := at.(map[string]any)
		if !ok {
			c.Fatalf("%s leads nowhere", ref)
		}
		return c.resolve(found)
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		forms, _ := schema[key].([]any)
		for _, form := range forms {
			if form, _ := form.(map[string]any); form["type"] != "null" && schema["properties"] == nil {
				return c.resolve(form)
			}
		}
	}
	return schema
}
