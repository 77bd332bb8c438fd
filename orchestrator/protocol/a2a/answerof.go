package a2a

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// actionKey is the metadata of a message, or the key of its data, that names an answer.
const actionKey = "action"

// answerOf makes an answer to a question of a message: its text is the name of an answer or the
// text that is asked for, its data is what is filled in.
func answerOf(q api.Question, m *sdk.Message) (api.Answer, error) {
	form, texts := map[string]any{}, []string(nil)
	for _, part := range m.Parts {
		switch content := part.Content.(type) {
		case sdk.Text:
			texts = append(texts, string(content))
		case sdk.Data:
			object, ok := content.Value.(map[string]any)
			if !ok {
				return api.Answer{}, refuse(badContent, "the data of an answer is an object")
			}
			for key, value := range object {
				form[key] = value
			}
		default:
			return api.Answer{}, refuse(badContent, "an answer takes text (text/plain) and data (application/json)")
		}
	}
	answer := api.Answer{Action: actionOf(q, m, form, texts), By: "a2a"}
	if answer.Action == "" {
		return answer, refuse(badParams, "the task has asked something: answer with one of "+
			strings.Join(q.Answers, ", "))
	}
	return filled(q, answer, form, texts)
}

// actionOf is the name of the answer that a message gives, "" where it can't be told.
func actionOf(q api.Question, m *sdk.Message, form map[string]any, texts []string) string {
	if named, ok := m.Metadata[actionKey].(string); ok {
		return named
	}
	if named, ok := form[actionKey].(string); ok && slices.Contains(q.Answers, named) {
		delete(form, actionKey)
		return named
	}
	text := strings.TrimSpace(joined(texts))
	for _, answer := range q.Answers {
		if strings.EqualFold(answer, text) {
			return answer
		}
	}
	if len(q.Answers) > 0 && (q.Form != nil || len(q.Answers) == 1) {
		return q.Answers[0]
	}
	return ""
}

// filled is an answer with what a message fills in.
func filled(q api.Question, answer api.Answer, form map[string]any, texts []string) (api.Answer, error) {
	text := strings.TrimSpace(joined(texts))
	named := strings.EqualFold(text, answer.Action)
	if field := textField(q.Form); field != "" && form[field] == nil && text != "" && !named {
		form[field] = text
	} else if !named {
		answer.Note = text
	}
	if q.Form == nil && len(form) == 0 || named && len(form) == 0 {
		return answer, nil
	}
	raw, err := strictjson.Encode(form)
	answer.Form = raw
	return answer, err
}

// textField is the only text that a form asks for.
func textField(form json.RawMessage) string {
	if form == nil {
		return ""
	}
	schema, _ := contract.Compile(form)
	if schema == nil {
		return ""
	}
	return onlyText(schema)
}
