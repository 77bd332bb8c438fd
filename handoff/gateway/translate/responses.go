package translate

import (
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

func readResponses(o *fields) *request {
	q := &request{choice: readChoice(o.take("tool_choice"), "")}
	q.readSettings(catalog.Responses, o)
	q.format = readFormat(o, "text/format/type", "text/format/")
	q.tools = readTools(o.take("tools"), "function", "", "parameters")
	if v := o.take("instructions"); v.there() {
		q.turns = append(q.turns, turn{at: v, role: system, parts: []part{{at: v, text: v.text()}}})
	}
	input := o.take("input")
	if input.isText() {
		q.turns = append(q.turns, turn{at: input, role: user, parts: readParts(catalog.Responses, input)})
		return q
	}
	for _, v := range input.list() {
		q.turns = append(q.turns, readItem(v))
	}
	return q
}

// readItem reads an item of a conversation or of an answer. Its own id and its state name nothing at a
// provider that has stored nothing.
func readItem(v value) turn {
	o := v.object()
	kind, role := o.take("type"), o.take("role")
	for _, name := range []string{"id", "status"} {
		_ = o.take(name)
	}
	t := turn{at: v, role: user}
	switch kind.text() {
	case "", "message":
		if t.role = role.text(); !oneOf(t.role, system, developer, user, assistant) {
			role.refuse(notThis)
		}
		t.parts = readParts(catalog.Responses, o.take("content"))
	case "function_call":
		t.role, t.parts = assistant, []part{readFunctionCall(o)}
	case "function_call_output":
		result := readParts(catalog.Responses, o.take("output"))
		t.parts = []part{{kind: resultPart, at: v, id: o.take("call_id").text(), parts: result}}
	default:
		if !v.bad.answers || kind.text() != "reasoning" {
			kind.refuse(notThis)
		}
	}
	o.done()
	return t
}

func readFunctionCall(o *fields) part {
	arguments := o.take("arguments")
	return part{
		kind: callPart, at: arguments, text: arguments.text(), id: o.take("call_id").text(),
		name: o.take("name").text(),
	}
}

func writeResponses(q *request) object {
	o := q.writeSettings(catalog.Responses)
	q.format.write(o, "text/format/type", "text/format/")
	q.choice.write(o, "")
	writeTools(o, q.tools, "", "parameters", func(t tool, o object) {
		o["type"] = "function"
		if !t.strict.there() {
			o["strict"] = false // in no other dialect it is by itself
		}
	})
	items := array{}
	for _, t := range q.turns {
		items = append(items, t.writeItems()...)
	}
	o["input"] = items
	return o
}

// writeItems writes a turn as a message, and each call and each result as an item of its own.
func (t turn) writeItems() (items array) {
	var content []part
	write := func(p part) object { return p.responses(t.role) }
	flush := func() {
		if len(content) > 0 || len(t.parts) == 0 {
			items = append(items, object{"type": "message", "role": t.role, "content": writeParts(content, write)})
		}
		content = nil
	}
	for _, p := range t.parts {
		switch p.kind {
		case callPart:
			flush()
			items = append(items, p.functionCall())
		case resultPart:
			flush()
			items = append(items, object{
				"type": "function_call_output", "call_id": p.id, "output": p.result(write),
			})
		default:
			content = append(content, p)
		}
	}
	flush()
	return items
}

func (p part) functionCall() object {
	return object{"type": "function_call", "call_id": p.id, "name": p.name, "arguments": p.text}
}

func readResponse(o *fields) *answer {
	a := &answer{head: readHead(o, "created_at"), stop: readResponseStop(o)}
	for _, v := range o.take("output").list() {
		a.add(readItem(v).parts...)
	}
	return a
}

// responseStops are the reasons why an answer is incomplete.
var responseStops = map[string]string{
	"": stopLength, "max_output_tokens": stopLength, "max_tokens": stopLength, "content_filter": stopFilter,
}

// readResponseStop reads why an answer ended, which its state says.
func readResponseStop(o *fields) string {
	status := o.take("status")
	if status.text() == "incomplete" {
		return readStop(o.take("incomplete_details/reason"), responseStops)
	}
	return readStop(status, map[string]string{"": stopEnd, "completed": stopEnd})
}

func writeResponse(a *answer) object {
	w := &responsesWriter{stream: &Stream{answer: *a}}
	for _, p := range a.parts {
		w.open(p)
		w.close(p)
	}
	return w.whole()
}

// writeOutput writes the item of an answer that a part begins.
func (h head) writeOutput(index int, p part) object {
	if p.kind == callPart {
		o := p.functionCall()
		o["id"], o["status"] = h.itemID("fc", index), "completed"
		return o
	}
	return object{
		"type": "message", "id": h.itemID("msg", index), "status": "completed", "role": assistant, "content": array{},
	}
}

// said is a part of a message of an answer.
func (p part) said() object {
	o := p.responses(assistant)
	if p.kind == textPart {
		o["annotations"], o["logprobs"] = array{}, array{}
	}
	return o
}

// itemID names an item like no other one of the conversation.
func (h head) itemID(kind string, index int) string {
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return -1
	}, h.id)
	const most = 40
	return kind + "_" + plain[:min(len(plain), most)] + "_" + strconv.Itoa(index)
}

// response is the object of an answer, with what it repeats of the request.
func (a *answer) response(items array) object {
	o := object{
		"id": a.id, "object": "response", "created_at": a.created, "status": "completed", "model": a.model,
		"output": items, "error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{},
		"parallel_tool_calls": true, "temperature": nil, "tool_choice": "auto", "tools": array{}, "top_p": nil,
		"usage": nil, "store": false,
	}
	for name, raw := range a.echo {
		put(o, name, value{raw: raw})
	}
	switch a.stop {
	case stopLength:
		o["status"] = "incomplete"
		set(o, "incomplete_details/reason", "max_output_tokens")
	case stopFilter:
		o["status"] = "incomplete"
		set(o, "incomplete_details/reason", "content_filter")
	case "":
		o["status"] = "in_progress"
	}
	if u := a.usage; u != nil {
		o["usage"] = object{
			"input_tokens": u.Input, "output_tokens": u.Output, "total_tokens": u.Input + u.Output,
			"input_tokens_details":  object{"cached_tokens": u.Cached},
			"output_tokens_details": object{"reasoning_tokens": u.Reasoning},
		}
	}
	return o
}
