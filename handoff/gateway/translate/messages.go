package translate

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

func readMessages(o *fields) *request {
	q := &request{}
	q.readSettings(catalog.Messages, o)
	q.readEffort(o)
	q.readSingle(o)
	q.format = readFormat(o, "output_config/format/type", "output_config/format/")
	if f := &q.format; f.kind.there() {
		f.strict = value{f.kind.bad, f.kind.at, []byte("true")} // as it always is
		if title := f.schema.object().take("title"); title.isText() && isSchemaName(title.text()) {
			f.name = title
		}
	}
	q.tools = readTools(o.take("tools"), "custom", "", "input_schema")
	if v := o.take("system"); v.there() {
		q.turns = append(q.turns, turn{at: v, role: system, parts: readParts(catalog.Messages, v)})
	}
	for _, v := range o.take("messages").list() {
		m := v.object()
		role := m.take("role")
		if !oneOf(role.text(), user, assistant) {
			role.refuse(notThis)
		}
		q.turns = append(q.turns, turn{at: v, role: role.text(), parts: readParts(catalog.Messages, m.take("content"))})
		m.done()
	}
	return q
}

// isSchemaName reports whether a title can be the name of a schema at OpenAI.
func isSchemaName(title string) bool {
	const most, signs = 64, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return title != "" && len(title) <= most && strings.Trim(title, signs) == ""
}

// efforts are the words for how much a model works that OpenAI and Anthropic share.
var efforts = []string{"low", "medium", "high", "xhigh"}

// readEffort reads how much a model thinks. Of its thoughts others can say that there are none.
func (q *request) readEffort(o *fields) {
	effort, thinking := q.settings["reasoning_effort"], o.take("thinking/type")
	if effort.there() && !oneOf(effort.text(), efforts...) {
		effort.refuse(notThis)
	}
	switch {
	case !thinking.there():
	case thinking.text() != "disabled" || effort.there():
		thinking.refuse("it has output_config.effort alone, or that the model doesn't think")
	default:
		q.settings["reasoning_effort"] = value{thinking.bad, thinking.at, []byte(`"none"`)}
	}
}

// readSingle reads which tools are to be called, and whether one at a time.
func (q *request) readSingle(o *fields) {
	kind, single := o.take("tool_choice/type"), o.take("tool_choice/disable_parallel_tool_use")
	q.choice = choice{kind.text(), o.take("tool_choice/name").text()}
	if !oneOf(kind.text(), "", "auto", "any", "none", "tool") {
		kind.refuse(notThis)
	}
	if q.choice.mode == "any" {
		q.choice.mode = "required"
	}
	if single.there() {
		q.settings["parallel_tool_calls"] = value{single.bad, single.at, strconv.AppendBool(nil, !single.yes())}
	}
}

func writeMessages(q *request) object {
	rest := object{}
	q.writeOwn(rest)
	o := q.writeSettings(catalog.Messages)
	for name, v := range rest {
		o[name] = v
	}
	if f := q.format; f.kind.text() == "json_schema" {
		set(o, "output_config/format", object{"type": "json_schema", "schema": f.titled()})
	} else {
		f.kind.unsaid()
	}
	writeTools(o, q.tools, "", "input_schema", func(t tool, o object) {
		if !t.schema.there() {
			o["input_schema"] = object{"type": "object", "properties": object{}}
		}
	})
	q.writeTurns(o)
	return o
}

// writeOwn takes out the settings that have a form of their own, and writes them.
func (q *request) writeOwn(o object) {
	t, stop, effort := q.settings["temperature"], q.settings["stop"], q.settings["reasoning_effort"]
	if n, _ := strconv.ParseFloat(string(t.raw), 64); n > 1 {
		t.refuse("it takes 0 to 1")
	}
	if stop.isText() {
		q.settings["stop"] = value{stop.bad, stop.at, append(append([]byte("["), stop.raw...), ']')}
	}
	if effort.text() == "none" {
		delete(q.settings, "reasoning_effort")
		set(o, "thinking/type", "disabled")
	} else if effort.there() && !oneOf(effort.text(), efforts...) {
		effort.refuse(notThis)
	}
	if safety := q.settings["safety_identifier"]; !q.settings["user"].there() ||
		string(q.settings["user"].raw) == string(safety.raw) { // it is for the same
		q.settings["user"] = safety
		delete(q.settings, "safety_identifier")
	}
	q.writeChoice(o)
}

func (q *request) writeChoice(o object) {
	mode, parallel := q.choice.mode, q.settings["parallel_tool_calls"]
	delete(q.settings, "parallel_tool_calls")
	if parallel.there() && mode != "none" {
		set(o, "tool_choice/disable_parallel_tool_use", !parallel.yes())
		mode = cmp.Or(mode, "auto")
	}
	if mode == "required" {
		mode = "any"
	}
	if mode != "" {
		set(o, "tool_choice/type", mode)
	}
	if q.choice.name != "" {
		set(o, "tool_choice/name", q.choice.name)
	}
}

// titled is the schema with its name as its title.
func (f format) titled() json.RawMessage {
	f.description.unsaid()
	if f.strict.there() && !f.strict.yes() {
		f.strict.refuse("an answer always keeps to its schema there")
	}
	title := f.schema.object().take("title")
	switch {
	case !f.schema.there():
		f.kind.refuse("it takes a schema alone")
		return nil
	case !f.name.there() || string(title.raw) == string(f.name.raw):
		return f.schema.raw
	case len(title.raw) > 0:
		f.name.refuse("the name of a schema is its title there, and this one has another title")
	}
	named, _ := strictjson.Set(f.schema.raw, []string{"title"}, f.name.raw) // it is an object
	return named
}

// writeTurns writes what comes first of the system as the system's, and joins turns of one role: the results
// of calls have to stand together.
func (q *request) writeTurns(o object) {
	var first []part
	rest := q.turns
	for ; len(rest) > 0 && oneOf(rest[0].role, system, developer); rest = rest[1:] {
		first = append(first, rest[0].parts...)
	}
	if len(first) > 0 {
		o["system"] = writeParts(first, part.messages)
	}
	messages := array{}
	for _, t := range merged(rest, func(turn) bool { return true }) {
		if oneOf(t.role, system, developer) {
			t.at.refuse("what the system says comes before all messages there")
		}
		messages = append(messages, object{"role": t.role, "content": writeParts(t.parts, part.messages)})
	}
	o["messages"] = messages
}

// messagesStops are the reasons of Messages.
var messagesStops = map[string]string{
	"": stopEnd, "end_turn": stopEnd, "stop_sequence": stopSequence, "max_tokens": stopLength,
	"model_context_window_exceeded": stopLength, "tool_use": stopTools, "refusal": stopFilter,
}

func readMessage(o *fields) *answer {
	a := &answer{head: readHead(o, "created")}
	a.stop, a.sequence = readStop(o.take("stop_reason"), messagesStops), o.take("stop_sequence").text()
	a.add(readParts(catalog.Messages, o.take("content"))...)
	return a
}

func writeMessage(a *answer) object {
	o := a.message()
	o["content"] = each(a.parts, func(p part) any {
		if p.kind == refusalPart {
			p.kind = textPart
		}
		return p.messages()
	})
	o["stop_reason"] = a.messagesStop(a.texts(refusalPart) != "")
	putText(o, "stop_sequence", a.sequence)
	return o
}

// message is an answer without what it says.
func (a *answer) message() object {
	return object{
		"id": a.id, "type": "message", "role": assistant, "model": a.model, "content": array{},
		"stop_reason": nil, "stop_sequence": nil, "usage": a.usage.messages(),
	}
}

// messagesStop is why an answer ended; one that refuses says so.
func (a *answer) messagesStop(refuses bool) string {
	switch {
	case a.stop == stopFilter || refuses:
		return "refusal"
	case a.stop == stopLength:
		return "max_tokens"
	case a.stop == stopTools:
		return "tool_use"
	case a.stop == stopSequence:
		return "stop_sequence"
	}
	return "end_turn"
}

// messages is zero where nobody counted: it has no other word.
func (u *Usage) messages() object {
	if u == nil {
		u = &Usage{}
	}
	return object{
		"input_tokens":            max(u.Input-u.Cached-u.CacheWrite, 0),
		"cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": u.CacheWrite,
		"output_tokens": u.Output,
	}
}
