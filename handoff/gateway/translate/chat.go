package translate

import "github.com/agent-on-demand/aod/handoff/gateway/catalog"

func readChat(o *fields) *request {
	q := &request{usage: o.take("stream_options/include_usage").yes()}
	newer := o.take("max_completion_tokens")
	q.readSettings(catalog.Chat, o)
	if newer.there() {
		if older := q.settings["max_tokens"]; older.there() && string(older.raw) != string(newer.raw) {
			older.refuse("it says something else than max_completion_tokens")
		}
		q.settings["max_tokens"] = newer
	}
	q.format = readFormat(o, "response_format/type", "response_format/json_schema/")
	q.choice = readChoice(o.take("tool_choice"), "function/")
	q.tools = readTools(o.take("tools"), "function", "function/", "parameters")
	for _, v := range o.take("messages").list() {
		q.turns = append(q.turns, readChatTurn(v))
	}
	return q
}

func readChatTurn(v value) turn {
	o := v.object()
	defer o.done()
	role, content := o.take("role"), readParts(catalog.Chat, o.take("content"))
	t := turn{at: v, role: role.text(), parts: content}
	switch t.role {
	case system, developer, user:
	case assistant:
		t.parts = append(t.parts, readChatSaid(o)...)
	case "tool":
		t.role, t.parts = user, []part{{kind: resultPart, at: v, id: o.take("tool_call_id").text(), parts: content}}
	default:
		role.refuse(notThis)
	}
	return t
}

// readChatSaid reads what an assistant says beside its content.
func readChatSaid(o *fields) (parts []part) {
	o.only("annotations", "[]")
	for _, name := range []string{"audio", "function_call"} { // older, or not text: also of an answer
		o.take(name).unsaid()
	}
	if refusal := o.take("refusal"); refusal.there() {
		parts = append(parts, part{kind: refusalPart, at: refusal, text: refusal.text()})
	}
	for _, v := range o.take("tool_calls").list() {
		c := v.object()
		c.only("type", `"function"`)
		arguments := c.take("function/arguments")
		parts = append(parts, part{
			kind: callPart, at: arguments, text: arguments.text(), id: c.take("id").text(),
			name: c.take("function/name").text(),
		})
		c.done()
	}
	return parts
}

func writeChat(q *request) object {
	o := q.writeSettings(catalog.Chat)
	q.format.write(o, "response_format/type", "response_format/json_schema/")
	q.choice.write(o, "function/")
	writeTools(o, q.tools, "function/", "parameters", func(_ tool, o object) { o["type"] = "function" })
	messages := array{}
	for _, t := range merged(q.turns, turn.onlyCalls) {
		if t.role == assistant {
			messages = append(messages, t.writeChatSaid())
		} else {
			messages = append(messages, t.writeChat()...)
		}
	}
	o["messages"] = messages
	return o
}

// onlyCalls reports whether a turn is nothing but calls, which belong to what was said before.
func (t turn) onlyCalls() bool {
	for _, p := range t.parts {
		if p.kind != callPart {
			return false
		}
	}
	return t.role == assistant && len(t.parts) > 0
}

// writeChat writes a turn as one message, and results as messages of their own.
func (t turn) writeChat() (messages array) {
	var content []part
	flush := func() {
		if len(content) > 0 || len(t.parts) == 0 {
			messages = append(messages, object{"role": t.role, "content": writeParts(content, part.chat)})
		}
		content = nil
	}
	for _, p := range t.parts {
		if p.kind != resultPart {
			content = append(content, p)
			continue
		}
		for _, inner := range p.parts {
			if inner.kind != textPart {
				inner.at.refuse("the result of a tool is text alone there")
			}
		}
		flush()
		messages = append(messages, object{"role": "tool", "tool_call_id": p.id, "content": p.result(part.chat)})
	}
	flush()
	return messages
}

// writeChatSaid writes what an assistant has said: the calls come last.
func (t turn) writeChatSaid() object {
	var content []part
	calls := array{}
	o := object{"role": assistant, "content": nil}
	for _, p := range t.parts {
		switch {
		case p.kind == callPart:
			calls = append(calls, p.chatCall())
		case len(calls) > 0:
			p.at.refuse("nothing is said after the calls of tools there")
		case p.kind == refusalPart && o["refusal"] == nil:
			o["refusal"] = p.text
		default:
			content = append(content, p)
		}
	}
	if len(content) > 0 || len(calls) == 0 && o["refusal"] == nil {
		o["content"] = writeParts(content, part.chat)
	}
	if len(calls) > 0 {
		o["tool_calls"] = calls
	}
	return o
}

func (p part) chatCall() object {
	return object{"id": p.id, "type": "function", "function": object{"name": p.name, "arguments": p.text}}
}

// chatStops are the reasons of Chat Completions.
var chatStops = map[string]string{
	"": stopEnd, "stop": stopEnd, "length": stopLength, "tool_calls": stopTools, "content_filter": stopFilter,
}

func chatStop(stop string) string {
	for written, read := range chatStops {
		if read == stop && written != "" {
			return written
		}
	}
	return "stop"
}

func readChatAnswer(o *fields) *answer {
	a := &answer{head: readHead(o, "created")}
	for i, v := range o.take("choices").list() {
		if i > 0 {
			v.refuse("it has one answer")
		}
		choice := v.object()
		a.add(readParts(catalog.Chat, choice.take("message/content"))...)
		a.add(readChatSaid(choice.below["message"])...)
		a.stop = readStop(choice.take("finish_reason"), chatStops)
	}
	return a
}

func (a *answer) chatHead(kind string) object {
	return object{"id": a.id, "object": kind, "created": a.created, "model": a.model}
}

func writeChatAnswer(a *answer) object {
	message := object{"role": assistant, "content": nil, "refusal": nil}
	putText(message, "content", a.texts(textPart))
	putText(message, "refusal", a.texts(refusalPart))
	calls := array{}
	for _, p := range a.parts {
		if p.kind == callPart {
			calls = append(calls, p.chatCall())
		}
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	} else if message["content"] == nil && message["refusal"] == nil {
		message["content"] = ""
	}
	o := a.chatHead("chat.completion")
	o["choices"] = array{object{
		"index": 0, "message": message, "logprobs": nil, "finish_reason": chatStop(a.stop),
	}}
	if a.usage != nil {
		o["usage"] = a.usage.chat()
	}
	return o
}

func (u *Usage) chat() object {
	return object{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     object{"cached_tokens": u.Cached},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
	}
}
