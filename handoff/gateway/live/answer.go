package live

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// Answer gathers the events of a stream into the answer that the provider would have given without one. It isn't for
// several at once. Its caller bounds its Size.
type Answer struct {
	dialect catalog.Dialect
	whole   map[string]any // the answer, but for
	parts   list           // its choices or blocks
	body    []byte         // of Responses, which say it themselves at the end
	size    int64
}

// NewAnswer returns an Answer in a dialect, of which nothing has come.
func NewAnswer(d catalog.Dialect) *Answer { return &Answer{dialect: d, whole: map[string]any{}} }

// Size is about how much memory it takes, in bytes.
func (a *Answer) Size() int64 { return a.size }

// Add takes the data of an event. What isn't one says nothing.
func (a *Answer) Add(data []byte) {
	switch a.dialect {
	case catalog.Chat:
		a.addChunk(object(data))
	case catalog.Messages:
		a.addMessage(object(data))
	case catalog.Responses:
		var event struct {
			Type     string
			Response json.RawMessage
		}
		ends := json.Unmarshal(data, &event) == nil
		if ends && (event.Type == "response.completed" || event.Type == "response.incomplete") {
			a.body, a.size = event.Response, int64(len(event.Response))
		}
	}
}

// Body returns the answer, as JSON; nil: none has come.
func (a *Answer) Body() []byte {
	switch {
	case a.dialect == catalog.Responses || len(a.whole)+len(a.parts.parts) == 0:
		return a.body
	case a.dialect == catalog.Messages:
		a.whole["content"] = &a.parts
	default:
		a.whole["object"], a.whole["choices"] = "chat.completion", &a.parts
	}
	body, _ := json.Marshal(a.whole) // it was JSON
	return body
}

// object reads an object, with its numbers as they are written; of anything else it is empty.
func object(data []byte) (all map[string]any) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	_ = decoder.Decode(&all)
	return all
}

func objectOf(v any) map[string]any {
	all, _ := v.(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	return all
}

// addChunk adds a chunk of Chat Completions. Its last one may have the counts, and no choice.
func (a *Answer) addChunk(event map[string]any) {
	choices, _ := event["choices"].([]any)
	for _, one := range choices {
		choice := objectOf(one)
		into := a.at(&a.parts, choice)
		if into["message"] == nil {
			into["message"] = map[string]any{"role": "assistant", "content": nil}
		}
		a.merge(objectOf(into["message"]), objectOf(choice["delta"]))
		delete(choice, "delta")
		a.merge(into, choice)
	}
	delete(event, "choices")
	maps.DeleteFunc(event, func(_ string, value any) bool { return value == nil })
	a.take(a.whole, event)
}

// take has values take the place of those before.
func (a *Answer) take(into, values map[string]any) {
	a.size += weigh(values)
	maps.Copy(into, values)
}

// weigh is about how much memory a value takes, in bytes.
func weigh(v any) (size int64) {
	const each = 64
	switch v := v.(type) {
	case string:
		size = int64(len(v))
	case map[string]any:
		for name, value := range v {
			size += int64(len(name)) + weigh(value)
		}
	case []any:
		for _, value := range v {
			size += weigh(value)
		}
	}
	return size + each
}

// atOnce are texts that come whole, and perhaps again.
var atOnce = []string{"id", "type", "role", "name", "finish_reason"}

// merge adds a delta to what came before it: texts go on, lists have their parts by index, all else is new.
func (a *Answer) merge(into, delta map[string]any) {
	for name, value := range delta {
		before, known := into[name]
		if !known {
			a.size += weigh(name)
		}
		switch value := value.(type) {
		case nil:
			into[name] = before
		case string:
			into[name] = a.mergeText(name, before, value)
		case map[string]any:
			part := objectOf(before)
			a.merge(part, value)
			into[name] = part
		case []any:
			into[name] = a.mergeList(before, value)
		default:
			into[name] = value
		}
	}
}

func (a *Answer) mergeText(name string, before any, more string) any {
	if slices.Contains(atOnce, name) && more != "" {
		return more
	}
	if more == "" && name == "content" {
		return before // there is none beside calls
	}
	known, is := before.(*text)
	if !is {
		known = &text{}
		begun, _ := before.(string)
		known.WriteString(begun)
	}
	a.size += int64(len(more))
	known.WriteString(more)
	return known
}

// mergeList adds parts: those with an index to what came of them before, others as they are. In a plain answer they
// have none.
func (a *Answer) mergeList(before any, delta []any) any {
	known, is := before.(*list)
	if !is {
		known = &list{}
	}
	for _, one := range delta {
		part, isObject := one.(map[string]any)
		if _, placed := part["index"]; !isObject || !placed {
			a.size += weigh(one)
			known.parts = append(known.parts, one)
			continue
		}
		into := a.at(known, part)
		delete(part, "index")
		a.merge(into, part)
	}
	return known
}

// addMessage adds an event of Messages.
func (a *Answer) addMessage(event map[string]any) {
	switch event["type"] {
	case "message_start":
		a.take(a.whole, objectOf(event["message"]))
	case "content_block_start":
		a.take(a.at(&a.parts, event), objectOf(event["content_block"]))
	case "content_block_delta":
		a.addDelta(a.at(&a.parts, event), objectOf(event["delta"]))
	case "message_delta":
		a.take(a.whole, objectOf(event["delta"]))
		usage := objectOf(a.whole["usage"])
		a.take(usage, objectOf(event["usage"]))
		a.whole["usage"] = usage
	}
}

// addDelta adds to a block of Messages.
func (a *Answer) addDelta(block, delta map[string]any) {
	kind := delta["type"]
	delete(delta, "type")
	switch kind {
	case "input_json_delta":
		more, _ := delta["partial_json"].(string)
		known, is := block["input"].(*arguments)
		if !is {
			known = &arguments{}
		}
		a.size += int64(len(more))
		known.WriteString(more)
		block["input"] = known
	case "citations_delta":
		block["citations"] = a.mergeList(block["citations"], []any{delta["citation"]})
	default:
		a.merge(block, delta)
	}
}

// text comes in pieces.
type text struct{ bytes.Buffer }

// MarshalJSON implements json.Marshaler.
func (t *text) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// arguments are those of a call, as far as they have come.
type arguments struct{ bytes.Buffer }

// MarshalJSON implements json.Marshaler: of what was cut off there is nothing.
func (a *arguments) MarshalJSON() ([]byte, error) {
	if !json.Valid(a.Bytes()) {
		return []byte("{}"), nil
	}
	return a.Bytes(), nil
}

// list are parts that come in pieces.
type list struct {
	parts   []any
	byIndex map[int64]map[string]any
}

// indexOf is the place of a part; where it says none, the first.
func indexOf(part map[string]any) int64 {
	number, _ := part["index"].(json.Number)
	n, _ := number.Int64()
	return n
}

// at returns the part of a list at the place of another one, which is made where there is none.
func (a *Answer) at(l *list, part map[string]any) map[string]any {
	index := indexOf(part)
	if l.byIndex == nil {
		l.byIndex = map[int64]map[string]any{}
	}
	if l.byIndex[index] == nil {
		l.byIndex[index] = map[string]any{}
		l.parts = append(l.parts, l.byIndex[index])
		a.size += weigh(l.byIndex[index])
	}
	return l.byIndex[index]
}

// MarshalJSON implements json.Marshaler.
func (l *list) MarshalJSON() ([]byte, error) {
	if l.parts == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(l.parts)
}
