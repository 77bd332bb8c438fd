package mcp

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// elicits reports whether a client shows forms to people. One that says no more than that it elicits does.
func elicits(c *sdk.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// elicitation is a question as a client shows it.
type elicitation struct {
	question api.Question
	params   *sdk.ElicitParams
	fields   map[string]any // of the question's own form
	choice   string         // the field that names the answer; "": who accepts gives one and the same
	accepted string         // the answer of who accepts, where there is no choice
	rejected bool           // who declines gives an answer
}

// elicit makes an elicitation of a question. refusal says why a client of a revision can't be asked; nil: it can.
func elicit(q api.Question, revision string) (e elicitation, refusal *unanswered) {
	e.question = q
	var required []any
	if q.Form != nil {
		var err error
		if e.fields, required, err = flat(q.Form, revision); err != nil {
			return e, noForm(err)
		}
	}
	knowsNo := slices.Contains(q.Answers, handoff.Reject)
	e.rejected = knowsNo && (q.Kind != "" || len(required) == 0) // who declines fills in nothing
	properties := maps.Clone(e.fields)
	if properties == nil {
		properties = map[string]any{}
	}
	if e.rejected || !knowsNo {
		e.accepted = onlyConsent(q.Answers)
	}
	if e.accepted == "" {
		for e.choice = handoff.Reply; properties[e.choice] != nil; e.choice += "_" {
			continue
		}
		properties[e.choice] = map[string]any{"type": "string", "title": "Answer", "enum": q.Answers}
		required = append(required, e.choice)
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	e.params = &sdk.ElicitParams{Mode: "form", Message: textOf(q), RequestedSchema: schema}
	return e, nil
}

// onlyConsent is the one answer that isn't no; "": there are several.
func onlyConsent(answers []string) string {
	consents := slices.DeleteFunc(slices.Clone(answers), func(a string) bool { return a == handoff.Reject })
	if len(consents) == 1 {
		return consents[0]
	}
	return ""
}

// Bounds of what is shown with a question, in bytes.
const (
	maxShown   = 2000 // of one value
	maxMessage = 32 << 10
)

// textOf is the text of a question, with who asks and what it shows.
func textOf(q api.Question) string {
	var shown map[string]json.RawMessage
	_ = json.Unmarshal(q.Show, &shown) // nothing is shown otherwise
	texts := []string{q.Unit + " asks: " + q.Text}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		value := string(shown[name])
		if strings.HasPrefix(value, `"`) {
			value = strictjson.Text(shown[name])
		}
		texts = append(texts, name+": "+fault.Clip(value, maxShown))
	}
	return fault.Clip(strings.Join(texts, "\n\n"), maxMessage)
}

// again is the elicitation with the reason why an answer before wasn't taken.
func (e elicitation) again(why string) *sdk.ElicitParams {
	if why == "" {
		return e.params
	}
	params := *e.params
	params.Message = "The answer was not taken: " + why + "\n\n" + params.Message
	return &params
}

// The actions of people.
const (
	accepts  = "accept"
	declines = "decline"
	cancels  = "cancel"
)

// answer is what a person says to a question. refusal says that it isn't an answer, so that the run can't go on. The
// error is an Input fault: something else was filled in than was asked for.
func (e elicitation) answer(said *sdk.ElicitResult) (answer api.Answer, refusal *unanswered, err error) {
	answer.By = "mcp"
	switch said.Action {
	case accepts:
	case declines:
		if e.rejected {
			answer.Action = handoff.Reject
			return answer, nil, nil
		}
		return answer, declined, nil
	case cancels:
		return answer, dismissed, nil
	default:
		return answer, nil, fault.New(fault.Input, "there is no action %s", fault.Quote(said.Action)).
			WithHint("action is accept, decline or cancel")
	}
	for name := range said.Content {
		if _, asked := e.fields[name]; !asked && name != e.choice {
			return answer, nil, fault.New(fault.Input, "%s was not asked for", fault.Quote(name)).
				WithHint("fill in the fields of requestedSchema alone")
		}
	}
	answer.Action = e.accepted
	if e.choice != "" {
		answer.Action, _ = said.Content[e.choice].(string) // another one is refused as no answer
	}
	if e.question.Form == nil || e.question.Kind != "" && answer.Action == handoff.Reject {
		return answer, nil, nil
	}
	form := maps.Clone(said.Content)
	delete(form, e.choice)
	answer.Form, err = strictjson.Encode(form)
	if form == nil {
		answer.Form = json.RawMessage("{}")
	}
	return answer, nil, err
}

var errNested = errors.New("a field of its form is neither a text, a number, yes or no, nor a choice of texts")

// flat returns the properties of a question's form as the protocol has them: none holds others. What it says beyond
// that of values is looked at when it is answered.
func flat(form json.RawMessage, revision string) (properties map[string]any, required []any, err error) {
	schema, _ := contract.Compile(form)
	if schema == nil {
		return nil, nil, errors.New("its form can't be read")
	}
	if len(schema.FilePlaces()) > 0 {
		return nil, nil, errors.New("a field of its form takes a file")
	}
	plain, err := toolSchema(schema.Plain(), "")
	if err != nil {
		return nil, nil, err
	}
	document, err := strictjson.Decode(plain)
	if err != nil {
		return nil, nil, err
	}
	root, _ := document.(map[string]any)
	for _, key := range []string{"allOf", "anyOf", "oneOf", "if", "not", "$ref"} {
		if root[key] != nil {
			return nil, nil, errors.New("which fields its form has depends on what is filled in")
		}
	}
	definitions, _ := root["$defs"].(map[string]any)
	known, _ := root["properties"].(map[string]any)
	properties = make(map[string]any, len(known))
	for name, property := range known {
		if properties[name] = flatProperty(property, definitions, revision); properties[name] == nil {
			return nil, nil, errNested
		}
	}
	required, _ = root["required"].([]any)
	for _, name := range required {
		if text, _ := name.(string); properties[text] == nil {
			return nil, nil, errors.New("a field of its form isn't described")
		}
	}
	return properties, required, nil
}

// elicitFormats are the formats of texts that the protocol knows.
var elicitFormats = keywordSet(`email uri date date-time`)

// flatProperty is a property as the protocol has it; nil: it can't be.
func flatProperty(property any, definitions map[string]any, revision string) any {
	m, _ := property.(map[string]any)
	if m == nil {
		return nil
	}
	m = inlined(m, definitions)
	for _, key := range []string{"allOf", "anyOf", "oneOf", "if", "not", "$ref", "const"} {
		if m[key] != nil {
			return nil
		}
	}
	kind, _ := m["type"].(string)
	choice, isChoice := textsOf(m["enum"])
	if kind == "" && isChoice {
		kind = "string"
	}
	flat := kept(m, "title", "description")
	flat["type"] = kind
	switch {
	case kind == "string" && isChoice:
		flat["enum"] = choice
	case m["enum"] != nil:
		return nil
	case kind == "string":
		maps.Copy(flat, kept(m, "minLength", "maxLength"))
		if name, _ := m["format"].(string); elicitFormats[name] {
			flat["format"] = name
		}
	case kind == "number" || kind == "integer":
		maps.Copy(flat, kept(m, "minimum", "maximum"))
	case kind == "boolean":
	case kind == "array" && revision >= manyChoices:
		return several(m, flat)
	default:
		return nil
	}
	if value, there := m["default"]; there && isOf(value, kind) {
		flat["default"] = value
	}
	return flat
}

// manyChoices is the first revision in which several of the texts of a list may be chosen.
const manyChoices = "2025-11-25"

// several is a list of texts, each of which is chosen; nil: it is another list.
func several(m, flat map[string]any) any {
	items, _ := m["items"].(map[string]any)
	choice, isChoice := textsOf(items["enum"])
	if !isChoice {
		return nil
	}
	maps.Copy(flat, kept(m, "minItems", "maxItems"))
	flat["items"] = map[string]any{"type": "string", "enum": choice}
	return flat
}

func kept(m map[string]any, keys ...string) map[string]any {
	some := map[string]any{}
	for _, key := range keys {
		if value, there := m[key]; there {
			some[key] = value
		}
	}
	return some
}

// textsOf returns a list that holds texts alone, and at least one.
func textsOf(v any) (list []any, ok bool) {
	list, _ = v.([]any)
	for _, each := range list {
		if _, isText := each.(string); !isText {
			return nil, false
		}
	}
	return list, len(list) > 0
}

// isOf reports whether a value is of a type that a form has.
func isOf(value any, kind string) bool {
	switch v := value.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case json.Number:
		return kind == "number" || kind == "integer" && strictjson.IsInteger(v)
	}
	return false
}
