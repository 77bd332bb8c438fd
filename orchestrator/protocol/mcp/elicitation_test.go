package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// shownForm is a form as a client sees it.
type shownForm struct {
	Type       string
	Properties map[string]map[string]any
	Required   []string
}

func formShown(t *testing.T, e elicitation) (form shownForm) {
	t.Helper()
	raw, err := json.Marshal(e.params.RequestedSchema)
	must(t, err)
	must(t, json.Unmarshal(raw, &form))
	return form
}

func TestFormsThatAreFlat(t *testing.T) {
	t.Parallel()
	for property, want := range map[string]string{
		`{"type":"string","title":"T","description":"D","minLength":1,"maxLength":2,"pattern":"a","format":"email","default":"x"}`: `{"default":"x","description":"D","format":"email","maxLength":2,"minLength":1,"title":"T","type":"string"}`,
		`{"type":"string","format":"hostname"}`:                                    `{"type":"string"}`,
		`{"type":"int","minimum":1,"maximum":2,"default":1,"multipleOf":3}`:        `{"default":1,"maximum":2,"minimum":1,"type":"integer"}`,
		`{"type":"integer","default":1.5}`:                                         `{"type":"integer"}`,
		`{"type":"bool","default":true}`:                                           `{"default":true,"type":"boolean"}`,
		`{"enum":["a","b"],"default":"a"}`:                                         `{"default":"a","enum":["a","b"],"type":"string"}`,
		`{"type":"string","default":7}`:                                            `{"type":"string"}`,
		`{"$ref":"#/definitions/name"}`:                                            `{"type":"string"}`,
		`{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1}`: `{"items":{"enum":["a","b"],"type":"string"},"minItems":1,"type":"array"}`,
		`{"type":"array","items":{"type":"string"}}`:                               "",
		`{"type":"object","properties":{}}`:                                        "",
		`{"type":"string","format":"file_path"}`:                                   "",
		`{"type":["string","integer"]}`:                                            "",
		`{"enum":[1,2]}`:                                                           "",
		`{"anyOf":[{"type":"string"},{"type":"integer"}]}`:                         "",
		`{}`: "",
	} {
		q := api.Question{Kind: api.QuestionInput, Answers: []string{"answer", "reject"}, Form: json.RawMessage(`{"type":"object","properties":{"x":` + property + `},"definitions":{"name":{"type":"string"}}}`)}
		e, refusal := elicit(q, Stateless)
		got := ""
		if refusal == nil {
			raw, err := json.Marshal(formShown(t, e).Properties["x"])
			must(t, err)
			got = string(raw)
		}
		if got != want {
			t.Errorf("%s is %s, not %s", property, got, want)
		}
	}
	list := api.Question{Answers: []string{"answer"}, Form: json.RawMessage(`{"type":"object","properties":{"x":{"type":"array","items":{"type":"string","enum":["a"]}}}}`)}
	if _, refusal := elicit(list, "2025-06-18"); refusal == nil {
		t.Error("a revision without lists gets one")
	}
	for _, form := range []string{`{"type":"object","required":["x"]}`, `{"type":"object","properties":{"x":{"type":"string"}},"anyOf":[{"required":["x"]}]}`, `{`} {
		if _, refusal := elicit(api.Question{Answers: []string{"answer"}, Form: json.RawMessage(form)}, Stateless); refusal == nil {
			t.Errorf("%s is shown", form)
		}
	}
}

func TestAFieldOfTheFormHidesNoChoice(t *testing.T) {
	t.Parallel()
	q := api.Question{Answers: []string{"a", "b"}, Form: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"},"answer_":{"type":"string"}}}`)}
	e, _ := elicit(q, Stateless)
	if form := formShown(t, e); len(form.Properties) != 3 || !slices.Equal(form.Required, []string{"answer__"}) {
		t.Errorf("%v", form)
	}
	got, _, err := e.answer(&sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer__": "b", "answer": "x"}})
	if err != nil || got.Action != "b" || string(got.Form) != `{"answer":"x"}` {
		t.Errorf("%+v %v", got, err)
	}
}

func TestAFlowThatNeedsItsFormTakesNoBareNo(t *testing.T) {
	t.Parallel()
	q := api.Question{Answers: []string{"approve", "reject"}, Form: json.RawMessage(`{"type":"object","properties":{"why":{"type":"string"}},"required":["why"]}`)}
	e, _ := elicit(q, Stateless)
	if _, refusal, _ := e.answer(&sdk.ElicitResult{Action: "decline"}); refusal != declined {
		t.Errorf("%v", refusal)
	}
	got, _, err := e.answer(&sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "reject", "why": "late"}})
	if err != nil || got.Action != "reject" || string(got.Form) != `{"why":"late"}` {
		t.Errorf("%+v %v", got, err)
	}
}

// FuzzElicitation makes forms of questions of strangers, and answers of what strangers say: a form is flat, and an
// answer holds what was asked for.
func FuzzElicitation(f *testing.F) {
	f.Add(nameForm, "answer,reject", `{"answer":"Ada"}`, "accept", true)
	f.Add(string(whichOne.Form), "approve,revise,reject", `{"answer":"revise","times":2}`, "accept", false)
	f.Add(string(nested.Form), "a", `{}`, "decline", false)
	f.Add(`{"type":"object","properties":{"a":{"type":"array","items":{"enum":["x"]}},"b":{"$ref":"#/properties/b"}}}`, "", `{"a":["x"]}`, "cancel", true)
	fuzzbound.Run(f, func(t *testing.T, form, answers, content, action string, program bool) {
		q := api.Question{Text: content, Show: json.RawMessage(content), Form: json.RawMessage(form), Answers: strings.Split(answers, ",")}
		if program {
			q.Kind = api.QuestionInput
		}
		for _, revision := range []string{Stateless, "2025-06-18"} {
			e, refusal := elicit(q, revision)
			if refusal != nil {
				continue
			}
			shown := formShown(t, e)
			for name, property := range shown.Properties {
				if kind, _ := property["type"].(string); !slices.Contains([]string{"string", "number", "integer", "boolean", "array"}, kind) || property["properties"] != nil || property["$ref"] != nil {
					t.Errorf("%s: %q is %v", form, name, property)
				}
			}
			for _, name := range shown.Required {
				if shown.Properties[name] == nil {
					t.Errorf("%s: %q is required", form, name)
				}
			}
			said := &sdk.ElicitResult{Action: action}
			_ = json.Unmarshal([]byte(content), &said.Content)
			answer, _, err := e.answer(said)
			var filled map[string]any
			if err == nil && answer.Form != nil {
				must(t, json.Unmarshal(answer.Form, &filled))
			}
			for name := range filled {
				if e.fields[name] == nil {
					t.Errorf("%s: %s gives %q", form, content, name)
				}
			}
		}
	})
}
