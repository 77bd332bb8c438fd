package agent

import (
	"encoding/json"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// acpVersion is the one of the Agent Client Protocol that is spoken.
const acpVersion = "1"

// The steps of the Agent Client Protocol before a prompt.
const (
	acpInitialize step = "initialize"
	acpNew        step = "new"
	acpLoad       step = "load"
)

// acp speaks the Agent Client Protocol as a client that offers neither files nor terminals: the
// agent works on its own.
type acp struct{ dir string }

func (acp) first(s State) step {
	if s.Opened {
		return stepPrompt
	}
	return acpInitialize
}

func (p acp) request(to step, s State, prompt string) []byte {
	switch to {
	case acpInitialize:
		return rpcRequest(s.Pending, "initialize", map[string]any{
			"protocolVersion": json.Number(acpVersion),
			"clientCapabilities": map[string]any{
				"fs": map[string]any{"readTextFile": false, "writeTextFile": false}, "terminal": false,
			},
		})
	case acpNew:
		return rpcRequest(s.Pending, "session/new", map[string]any{"cwd": p.dir, "mcpServers": []any{}})
	case acpLoad:
		return rpcRequest(s.Pending, "session/load",
			map[string]any{"cwd": p.dir, "mcpServers": []any{}, "sessionId": s.Session})
	}
	return rpcRequest(s.Pending, "session/prompt", map[string]any{
		"sessionId": s.Session, "prompt": []any{map[string]any{"type": "text", "text": prompt}},
	})
}

func (acp) stop(s State) []byte {
	return rpcNotification("session/cancel", map[string]any{"sessionId": s.Session})
}

func (acp) ends(fields map[string]string, s State) bool { return rpcEnds(fields, s) }

func (p acp) hear(document any, s State, said *speech) meaning {
	m, ok := readRPC(document)
	switch {
	case !ok:
		return strange
	case m.answers(s.Pending):
		return p.answered(m, s, said.text.String())
	case m.method == "session/update" && m.id == nil && textAt(m.params, "sessionId") == s.Session:
		return meaning{events: p.update(at(m.params, "update"), s, said)}
	case m.method == "session/request_permission" && m.key() != "" && textAt(m.params, "sessionId") == s.Session:
		said.part()
		return meaning{ask: p.permission(m)}
	}
	if m.id != nil {
		said.part()
	}
	return rpcUnasked(m)
}

// answered says what the answer to the pending request means.
func (p acp) answered(m rpcMessage, s State, said string) meaning {
	if err := m.err(); err != nil {
		return meaning{end: &ending{Reply{Text: said}, err}}
	}
	switch {
	case strings.HasSuffix(s.Pending, "-"+string(acpInitialize)):
		return p.initialized(m.result, s)
	case strings.HasSuffix(s.Pending, "-"+string(acpLoad)):
		return meaning{next: stepPrompt}
	case strings.HasSuffix(s.Pending, "-"+string(acpNew)):
		id := textAt(m.result, "sessionId")
		if id == "" || len(id) > maxID {
			return ended(programError("session/new: the program answered without a sessionId of at most %d bytes",
				maxID))
		}
		return meaning{next: stepPrompt, session: id}
	}
	reply := Reply{Text: said, Stop: fault.Cut(textAt(m.result, "stopReason"), maxID)}
	if usage := at(m.result, "usage"); usage != nil {
		reply.Usage = usageOf(usage)
	}
	end := &ending{reply: reply}
	if reply.Stop == "refusal" || reply.Stop == "cancelled" {
		end.err = programError("the program ended the turn with %s", fault.Quote(reply.Stop))
	}
	return meaning{end: end}
}

// initialized says what follows the greeting: a new session, or the one that there is.
func (acp) initialized(result any, s State) meaning {
	version, _ := at(result, "protocolVersion").(json.Number)
	loads, _ := at(result, "agentCapabilities", "loadSession").(bool)
	switch {
	case version.String() != acpVersion:
		return ended(programError("initialize: the program speaks version %s of the protocol, and AOD speaks %s",
			fault.Quote(version.String()), acpVersion))
	case s.Session == "":
		return meaning{next: acpNew}
	case !loads:
		return ended(ErrNoResume)
	}
	return meaning{next: acpLoad}
}

// update says what the program tells of its work. What it tells while it loads a session was
// told before.
func (acp) update(update any, s State, said *speech) []Event {
	if !strings.HasSuffix(s.Pending, "-"+string(stepPrompt)) {
		return nil
	}
	e := Event{Kind: EventProgress, Text: textAt(update, "sessionUpdate"), Raw: encode(update)}
	switch e.Text {
	case "agent_message_chunk":
		if more, is := at(update, "content", "text").(string); is {
			said.add(more, text(at(update, "messageId")))
			e.Kind, e.Text = EventText, more
		}
	case "user_message_chunk":
		said.part()
	case "agent_thought_chunk":
		said.part()
		e.Kind, e.Text = EventThought, textAt(update, "content", "text")
	case "tool_call":
		said.part()
		fallthrough
	case "tool_call_update": // it may come while a message goes on
		e.Kind, e.Text, e.ID = EventTool, textAt(update, "title"), textAt(update, "toolCallId")
		e.Tool = api.ToolNews{
			Arguments: argumentsOf(at(update, "rawInput")), State: toolStates[textAt(update, "status")],
			Lines: outputLines(at(update, "content")),
		}
	case "plan":
		said.part()
		e.Kind, e.Text = EventPlan, planText(listAt(update, "entries"))
	}
	return []Event{e}
}

// planText has an entry of a plan a line.
func planText(entries []any) string {
	var lines []string
	for _, entry := range entries {
		lines = append(lines, textAt(entry, "content"))
	}
	return strings.Join(lines, "\n")
}

// permission is what a request for one wants.
func (acp) permission(m rpcMessage) *asked {
	call := at(m.params, "toolCall")
	text := textAt(call, "title")
	if input := at(call, "rawInput"); input != nil {
		text += "\n" + string(encode(input))
	}
	a := &asked{Permission: Permission{ID: m.key(), Text: askedText(text)}}
	reject := ""
	for _, each := range listAt(m.params, "options") {
		o := Option{ID: textAt(each, "optionId"), Name: fault.Cut(textAt(each, "name"), maxID)}
		kind := textAt(each, "kind")
		o.Allows = strings.HasPrefix(kind, "allow_")
		if a.offer(o) && kind == "reject_once" {
			reject = o.ID
		}
	}
	cancelled := map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}
	a.cancel = rpcResult(m.id, cancelled)
	a.answer = func(option string) []byte {
		if option == "" {
			option = reject
		}
		if option == "" {
			return a.cancel
		}
		return rpcResult(m.id, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": option}})
	}
	return a
}
