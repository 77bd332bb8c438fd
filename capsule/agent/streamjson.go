package agent

import (
	"cmp"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// The options of a permission request in the line format: the protocol has names for neither.
const (
	lineAllow = "allow"
	lineDeny  = "deny"

	lineDecision = "behavior" //nolint:misspell // the protocol's spelling
)

// streamJSON speaks the line format of claude-code: each line has a type.
type streamJSON struct{}

func (streamJSON) first(State) step { return stepPrompt }

func (streamJSON) request(_ step, s State, prompt string) []byte {
	return encode(map[string]any{
		"type": "user", "session_id": s.Session, "parent_tool_use_id": nil,
		"message": map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": prompt}}},
	})
}

func (streamJSON) stop(s State) []byte {
	return encode(map[string]any{
		"type": "control_request", "request_id": "stop-" + s.Pending, "request": map[string]any{"subtype": "interrupt"},
	})
}

func (streamJSON) ends(fields map[string]string, _ State) bool { return fields["type"] == "result" }

func (p streamJSON) hear(line any, s State, said *speech) meaning {
	kind := textAt(line, "type")
	switch {
	case kind == "":
		return strange
	case kind == "assistant":
		return meaning{events: assistantEvents(line, said)}
	case kind == "user":
		if !ofSubagent(line) {
			said.end()
		}
		return meaning{events: toolResults(line)}
	case kind == "result" && s.Pending != "":
		return p.result(line, said.text.String())
	case kind == "control_request":
		return p.control(line)
	case kind == "stream_event": // parts of what comes whole as "assistant"
		return meaning{}
	}
	h := meaning{events: []Event{{
		Kind: EventProgress, Text: strings.TrimSuffix(kind+"/"+textAt(line, "subtype"), "/"),
		Raw: encode(line),
	}}}
	if id := textAt(line, "session_id"); kind == "system" && textAt(line, "subtype") == "init" && len(id) <= maxID {
		h.session = id
	}
	return h
}

// assistantEvents are what a message of the model has: text, thoughts and calls of tools. What it
// says to a tool of its own isn't the answer.
func assistantEvents(line any, said *speech) (events []Event) {
	if ofSubagent(line) {
		said = &speech{}
	}
	for _, block := range contentOf(line) {
		e := Event{Raw: encode(block)}
		switch textAt(block, "type") {
		case "text":
			e.Kind, e.Text = EventText, textAt(block, "text")
			said.add(e.Text, textAt(line, "message", "id"))
		case "thinking":
			said.end()
			e.Kind, e.Text = EventThought, textAt(block, "thinking")
		case "tool_use":
			said.end()
			e.Kind, e.Text, e.ID = EventTool, textAt(block, "name"), textAt(block, "id")
			e.Tool = api.ToolNews{Arguments: argumentsOf(at(block, "input")), State: api.ToolRunning}
		default:
			e.Kind, e.Text = EventProgress, textAt(block, "type")
		}
		events = append(events, e)
	}
	return events
}

func ofSubagent(line any) bool { return textAt(line, "parent_tool_use_id") != "" }

// contentOf returns the blocks of a message: a text alone is one.
func contentOf(line any) []any {
	if text := textAt(line, "message", "content"); text != "" {
		return []any{map[string]any{"type": "text", "text": text}}
	}
	return listAt(line, "message", "content")
}

// toolResults are what the program's tools gave.
func toolResults(line any) (events []Event) {
	for _, block := range listAt(line, "message", "content") {
		if textAt(block, "type") == "tool_result" {
			e := Event{Kind: EventTool, ID: textAt(block, "tool_use_id"), Raw: encode(block)}
			e.Tool = api.ToolNews{State: api.ToolDone, Lines: outputLines(at(block, "content"))}
			if failed, _ := at(block, "is_error").(bool); failed {
				e.Tool.State = api.ToolFailed
			}
			events = append(events, e)
		}
	}
	return events
}

// result is the end of a turn.
func (streamJSON) result(line any, said string) meaning {
	end := &ending{reply: Reply{
		Text: cmp.Or(text(at(line, structuredOutput)), text(at(line, "result")), said),
		Stop: fault.Cut(textAt(line, "subtype"), maxID),
	}}
	if usage := at(line, "usage"); usage != nil {
		end.reply.Usage = usageOf(usage)
	}
	end.reply.CostUSD = costOf(at(line, "total_cost_usd"))
	h := meaning{end: end}
	if id := textAt(line, "session_id"); len(id) <= maxID {
		h.session = id
	}
	if failed, _ := at(line, "is_error").(bool); failed || strings.HasPrefix(end.reply.Stop, "error") {
		end.err = programError("the program ended the turn with %s: %s",
			fault.Quote(cmp.Or(end.reply.Stop, "an error")),
			fault.Quote(cmp.Or(textAt(line, "result"), reasonOf(at(line, "errors")), reasonOf(at(line, "error")))))
	}
	return h
}

// control is a request of the program: for a permission, or for what isn't offered.
func (streamJSON) control(line any) meaning {
	id, request := askedKey(textAt(line, "request_id")), at(line, "request")
	switch {
	case id == "":
		return strange
	case textAt(request, "subtype") != "can_use_tool":
		refusal := map[string]any{"subtype": "error", "request_id": id, "error": "AOD offers no such request"}
		return meaning{
			events: []Event{{Kind: EventRefused, Text: textAt(request, "subtype")}},
			send:   encode(map[string]any{"type": "control_response", "response": refusal}),
		}
	}
	input := at(request, "input")
	text := textAt(request, "tool_name") + "\n" + string(encode(input))
	a := &asked{Permission: Permission{ID: id, Text: askedText(text), Options: []Option{
		{ID: lineAllow, Name: "Allow", Allows: true}, {ID: lineDeny, Name: "Deny"},
	}}}
	a.answer = func(option string) []byte {
		if option == lineAllow {
			return controlResponse(id, map[string]any{lineDecision: "allow", "updatedInput": input})
		}
		return controlResponse(id, map[string]any{lineDecision: "deny", "message": "it was not permitted"})
	}
	a.cancel = controlResponse(id, map[string]any{
		lineDecision: "deny", "message": "the turn was stopped",
		"interrupt": true,
	})
	return meaning{ask: a}
}

func controlResponse(id string, response map[string]any) []byte {
	return encode(map[string]any{
		"type":     "control_response",
		"response": map[string]any{"subtype": "success", "request_id": id, "response": response},
	})
}
