package web

import (
	"bytes"
	"encoding/json"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/terminal"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Bounds of what is shown of an exchange with a model: pieces of a message, tools, bytes of one text, and of all.
const mostPieces, mostTools, mostText, mostTexts = 200, 200, 32 << 10, 512 << 10

// dialogue is an exchange with a model as a page shows it. It is read from what a run sent and a provider answered: in
// whatever form that is, what isn't understood is shown as JSON.
type dialogue struct {
	Messages []message
	Earlier  int64 // messages before those, which are too many
	Answer   []message
	Tools    []offered
	names    map[string]string // of the tools, by the ids of their calls
}

// message is what one side said.
type message struct {
	Who    string // system, user, assistant, tool
	Pieces []piece
}

// piece is a part of a message.
type piece struct {
	Kind string // text, thinking, call, result, picture or json
	Name string // of the tool
	Text string
	Size int64 // of the whole, in bytes
}

// Folded reports whether a piece is long.
func (p piece) Folded() bool {
	const open, lines = 2000, 24
	return len(p.Text) > open || bytes.Count([]byte(p.Text), []byte("\n")) > lines
}

// Head is how a folded piece begins.
func (p piece) Head() string {
	const head = 120
	return fault.Clip(fault.OneLine(fault.Cut(p.Text, head+1)), head)
}

// offered is a tool that a model may call.
type offered struct{ Name, Description string }

// newDialogue reads an exchange.
func newDialogue(e api.ModelExchange) dialogue {
	d := dialogue{names: map[string]string{}}
	asked := membersOf(e.Request)
	for _, name := range []string{"system", "instructions"} {
		if value := asked[name]; hasValue(value) {
			d.Messages = append(d.Messages, message{"system", d.parts(value)})
		}
	}
	for _, name := range []string{"messages", "input"} {
		if value := asked[name]; hasValue(value) {
			d.Messages = append(d.Messages, d.conversation(value)...)
		}
	}
	for tool := range strictjson.Elements(asked["tools"]) {
		if len(d.Tools) < mostTools {
			d.Tools = append(d.Tools, offeredIn(tool))
		}
	}
	d.Answer = d.answer(e.Answer)
	d.Earlier = trim(&d.Messages)
	return d
}

// membersOf are the fields of an object; of anything else there are none. Of names that stand twice the last counts.
func membersOf(object []byte) map[string][]byte {
	all := map[string][]byte{}
	for name, value := range strictjson.Members(object) {
		all[name] = value
	}
	return all
}

func hasValue(value []byte) bool { return len(value) > 0 && string(value) != "null" }

func isText(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// trim drops the first messages where all texts are too long together, and returns how many.
func trim(all *[]message) int64 {
	room := mostTexts
	for i := len(*all) - 1; i >= 0; i-- {
		for _, one := range (*all)[i].Pieces {
			const own = 200 // of its markup
			room -= len(one.Text) + own
		}
		if room < 0 && i < len(*all)-1 {
			*all = (*all)[i+1:]
			return int64(i + 1)
		}
	}
	return 0
}

// conversation reads a list of messages, or the text that is the only one.
func (d *dialogue) conversation(list []byte) (all []message) {
	if isText(list) {
		return []message{{"user", d.parts(list)}}
	}
	for item := range strictjson.Elements(list) {
		all = append(all, d.message(item))
	}
	if all == nil && string(list) != "[]" {
		all = []message{{"user", []piece{jsonPiece(list)}}}
	}
	return all
}

// message reads a message, or what stands in the place of one.
func (d *dialogue) message(raw []byte) message {
	if isText(raw) {
		return message{"user", d.parts(raw)}
	}
	has := membersOf(raw)
	switch kind := strictjson.Text(has["type"]); kind {
	case "function_call", "custom_tool_call":
		return message{"assistant", []piece{d.call(has["call_id"], has["name"], first(has["arguments"], has["input"]))}}
	case "function_call_output", "custom_tool_call_output":
		return message{"tool", d.result(has["call_id"], has["output"])}
	case "reasoning":
		return message{"assistant", thinking(has["summary"], has["content"])}
	}
	who := terminal.Plain(fault.Clip(strictjson.Text(has["role"]), 40))
	if who == "" {
		return message{"—", []piece{jsonPiece(raw)}}
	}
	return message{who, d.said(who, has)}
}

// said are the pieces of a message with a role.
func (d *dialogue) said(who string, has map[string][]byte) (all []piece) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if isText(has[name]) {
			all = append(all, textPiece("thinking", strictjson.Text(has[name])))
		}
	}
	content := has["content"]
	if who == "tool" || who == "function" {
		return append(all, d.result(has["tool_call_id"], content)...)
	}
	all = append(all, d.parts(content)...)
	if isText(has["refusal"]) {
		all = append(all, textPiece("text", strictjson.Text(has["refusal"])))
	}
	if legacy := has["function_call"]; hasValue(legacy) {
		function := membersOf(legacy)
		all = append(all, d.call(nil, function["name"], function["arguments"]))
	}
	for called := range strictjson.Elements(has["tool_calls"]) {
		one := membersOf(called)
		function := membersOf(one["function"])
		if len(all) < mostPieces {
			all = append(all, d.call(one["id"], function["name"], function["arguments"]))
		}
	}
	return all
}

func first(values ...[]byte) []byte {
	for _, value := range values {
		if hasValue(value) {
			return value
		}
	}
	return nil
}

// parts reads the content of a message: a text, or a list of parts.
func (d *dialogue) parts(content []byte) (all []piece) {
	switch {
	case !hasValue(content):
		return nil
	case isText(content):
		return []piece{textPiece("text", strictjson.Text(content))}
	case content[0] != '[':
		return []piece{jsonPiece(content)}
	}
	for part := range strictjson.Elements(content) {
		if len(all) >= mostPieces {
			return append(all, piece{Kind: "json", Text: "…", Size: int64(len(content))})
		}
		all = append(all, d.part(part)...)
	}
	return all
}

func (d *dialogue) part(raw []byte) []piece {
	if isText(raw) {
		return d.parts(raw)
	}
	has := membersOf(raw)
	switch kind := strictjson.Text(has["type"]); {
	case kind == "thinking" && isText(has["thinking"]):
		return []piece{textPiece("thinking", strictjson.Text(has["thinking"]))}
	case kind == "refusal" && isText(has["refusal"]):
		return []piece{textPiece("text", strictjson.Text(has["refusal"]))}
	case kind == "tool_use":
		return []piece{d.call(has["id"], has["name"], has["input"])}
	case kind == "tool_result":
		return d.result(has["tool_use_id"], has["content"])
	case kind == "image", kind == "image_url", kind == "input_image":
		return []piece{{Kind: "picture", Size: int64(len(raw))}}
	case isText(has["text"]) && (kind == "text" || kind == "input_text" || kind == "output_text"):
		return []piece{textPiece("text", strictjson.Text(has["text"]))}
	}
	return []piece{jsonPiece(raw)}
}

// call is a call of a tool, whose arguments are JSON or a text with it.
func (d *dialogue) call(id, name, arguments []byte) piece {
	if isText(arguments) {
		arguments = []byte(strictjson.Text(arguments))
	}
	one := valuePiece(arguments)
	one.Kind, one.Name = "call", terminal.Plain(fault.Clip(strictjson.Text(name), 200))
	if key := strictjson.Text(id); key != "" {
		d.names[key] = one.Name
	}
	return one
}

// result is what a tool answered.
func (d *dialogue) result(id, content []byte) []piece {
	all := d.parts(content)
	for i := range all {
		if all[i].Kind == "text" && json.Valid([]byte(all[i].Text)) {
			all[i] = valuePiece([]byte(all[i].Text))
		}
		if all[i].Kind != "picture" {
			all[i].Kind = "result"
		}
		all[i].Name = d.names[strictjson.Text(id)]
	}
	return all
}

// thinking are the texts of a model's reasoning, as far as it tells them.
func thinking(lists ...[]byte) (all []piece) {
	for _, list := range lists {
		for part := range strictjson.Elements(list) {
			if text := membersOf(part)["text"]; isText(text) && len(all) < mostPieces {
				all = append(all, textPiece("thinking", strictjson.Text(text)))
			}
		}
	}
	return all
}

func textPiece(kind, text string) piece {
	return piece{kind, "", terminal.Plain(clipped(text)), int64(len(text))}
}

// valuePiece shows JSON with its lines, or a text as it is.
func valuePiece(raw []byte) piece {
	if !json.Valid(raw) {
		return textPiece("json", string(raw))
	}
	return jsonPiece(raw)
}

func jsonPiece(raw []byte) piece {
	if len(raw) > mostText {
		return textPiece("json", string(raw))
	}
	return piece{"json", "", terminal.Plain(clipped(pretty(raw))), int64(len(raw))}
}

func clipped(text string) string {
	if len(text) <= mostText {
		return text
	}
	return fault.Cut(text, mostText) + "\n… (" + size(int64(len(text)-mostText)) + " more)"
}

func offeredIn(tool []byte) offered {
	has := membersOf(tool)
	if inner := membersOf(has["function"]); hasValue(inner["name"]) {
		has = inner
	}
	const short = 500
	name := first(has["name"], has["type"])
	return offered{
		terminal.Plain(fault.Clip(strictjson.Text(name), 200)),
		terminal.Plain(fault.Clip(strictjson.Text(has["description"]), short)),
	}
}
