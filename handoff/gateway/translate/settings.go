package translate

import (
	"encoding/json"
	"strings"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// setting is a field that goes on as it is, by where it stands in each dialect; "" has no word for it.
type setting struct{ chat, responses, messages string }

func (s setting) in(d catalog.Dialect) string {
	switch d {
	case catalog.Chat:
		return s.chat
	case catalog.Responses:
		return s.responses
	}
	return s.messages
}

// settings are kept by their names in Chat Completions.
var settings = []setting{
	{"model", "model", "model"},
	{"stream", "stream", "stream"},
	{"max_tokens", "max_output_tokens", "max_tokens"},
	{"temperature", "temperature", "temperature"},
	{"top_p", "top_p", "top_p"},
	{"stop", "", "stop_sequences"},
	{"reasoning_effort", "reasoning/effort", "output_config/effort"},
	{"verbosity", "text/verbosity", ""},
	{"parallel_tool_calls", "parallel_tool_calls", ""},
	{"user", "user", "metadata/user_id"},
	{"safety_identifier", "safety_identifier", ""},
	{"prompt_cache_key", "prompt_cache_key", ""},
	{"metadata", "metadata", ""},
}

// idle are values with which fields do nothing, so that no dialect needs a word for them.
var idle = map[catalog.Dialect]map[string][]string{
	catalog.Chat: {
		"n": {"1"}, "store": {"false"}, "logprobs": {"false"}, "top_logprobs": {"0"}, "logit_bias": {"{}"},
		"frequency_penalty": {"0", "0.0"}, "presence_penalty": {"0", "0.0"}, "modalities": {`["text"]`},
		"stream_options/include_obfuscation": {"false"}, // of which a translated stream has none
	},
	catalog.Responses: {
		"store":      {"false", "true"}, // nothing is stored, whatever it says
		"truncation": {`"disabled"`}, "include": {"[]"}, "background": {"false"}, "top_logprobs": {"0"},
		"stream_options/include_obfuscation": {"false"},
	},
}

func (q *request) readSettings(d catalog.Dialect, o *fields) {
	q.settings = map[string]value{}
	for _, s := range settings {
		if at := s.in(d); at != "" {
			q.settings[s.chat] = o.take(at)
		}
	}
	if string(q.settings["metadata"].raw) == "{}" {
		delete(q.settings, "metadata")
	}
	for at, harmless := range idle[d] {
		o.only(at, harmless...)
	}
}

func (q *request) writeSettings(d catalog.Dialect) object {
	o := object{}
	for _, s := range settings {
		v, at := q.settings[s.chat], s.in(d)
		if at == "" {
			v.unsaid()
			continue
		}
		put(o, at, v)
	}
	return o
}

// put sets a field, which may lie below others, unless its value isn't there.
func put(o object, path string, v value) {
	if v.there() {
		set(o, path, json.RawMessage(v.raw))
	}
}

func set(o object, path string, v any) {
	name, rest, deep := strings.Cut(path, "/")
	if !deep {
		o[name] = v
		return
	}
	if o[name] == nil {
		o[name] = object{}
	}
	set(o[name].(object), rest, v)
}

// putText sets a field, unless its text is empty.
func putText(o object, name, text string) {
	if text != "" {
		o[name] = text
	}
}

// tool is a function.
type tool struct{ name, description, schema, strict value }

func readTools(list value, kind, below, schema string) (tools []tool) {
	for _, v := range list.list() {
		o := v.object()
		o.only("type", `"`+kind+`"`)
		tools = append(tools, tool{
			o.take(below + "name"), o.take(below + "description"), o.take(below + schema), o.take(below + "strict"),
		})
		o.done()
	}
	return tools
}

// writeTools sets the tools, each with what more one has.
func writeTools(q object, tools []tool, below, schema string, more func(t tool, o object)) {
	if len(tools) == 0 {
		return
	}
	q["tools"] = each(tools, func(t tool) any {
		o := object{}
		put(o, below+"name", t.name)
		put(o, below+"description", t.description)
		put(o, below+schema, t.schema)
		put(o, below+"strict", t.strict)
		more(t, o)
		return o
	})
}

func each[T any](all []T, write func(T) any) array {
	list := array{}
	for _, one := range all {
		list = append(list, write(one))
	}
	return list
}

// choice is which tools are to be called: auto, none, required, or one by its name.
type choice struct{ mode, name string } // "" says nothing

// readChoice reads tool_choice as OpenAI has it.
func readChoice(v value, below string) choice {
	if v.isText() {
		if !oneOf(v.text(), "auto", "none", "required") {
			v.refuse(notThis)
		}
		return choice{mode: v.text()}
	}
	o := v.object()
	defer o.done()
	if !v.there() {
		return choice{}
	}
	o.only("type", `"function"`)
	return choice{"tool", o.take(below + "name").text()}
}

func (c choice) write(q object, below string) {
	if c.mode != "tool" {
		putText(q, "tool_choice", c.mode)
		return
	}
	q["tool_choice"] = object{"type": "function"}
	set(q, "tool_choice/"+below+"name", c.name)
}

// format is what an answer has to look like.
type format struct {
	kind                              value // "json_object" or "json_schema"
	name, description, schema, strict value
}

func readFormat(o *fields, kind, schema string) format {
	f := format{kind: o.take(kind)}
	switch f.kind.text() {
	case "", "text":
		return format{}
	case "json_object":
	case "json_schema":
		f.name, f.description = o.take(schema+"name"), o.take(schema+"description")
		f.schema, f.strict = o.take(schema+"schema"), o.take(schema+"strict")
	default:
		f.kind.refuse(notThis)
	}
	return f
}

// write writes the format as OpenAI has it: a schema has a name.
func (f format) write(q object, kind, schema string) {
	put(q, kind, f.kind)
	if f.kind.text() == "json_schema" {
		set(q, schema+"name", "answer")
		put(q, schema+"name", f.name)
		put(q, schema+"description", f.description)
		put(q, schema+"schema", f.schema)
		put(q, schema+"strict", f.strict)
	}
}
