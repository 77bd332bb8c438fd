package web

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// answer reads what a provider answered: an object, or a stream, which is kept as a text.
func (d *dialogue) answer(raw []byte) []message {
	switch {
	case !hasValue(raw):
		return nil
	case isText(raw):
		return d.streamed(strictjson.Text(raw))
	}
	has := membersOf(raw)
	if output := has["output"]; hasValue(output) {
		return d.conversation(output)
	}
	var all []message
	for choice := range strictjson.Elements(has["choices"]) {
		if said := membersOf(choice)["message"]; hasValue(said) {
			all = append(all, d.message(said))
		}
	}
	if all != nil {
		return all
	}
	if hasValue(has["content"]) && hasValue(has["role"]) {
		return []message{d.message(raw)}
	}
	if problem := membersOf(has["error"]); isText(problem["message"]) {
		return []message{{"error", d.parts(problem["message"])}}
	}
	return []message{{"answer", []piece{jsonPiece(raw)}}}
}

// streamed puts the pieces of a stream together. A stream of which nothing is understood is shown as it is.
func (d *dialogue) streamed(text string) []message {
	s := stream{}
	for line := range strings.Lines(text) {
		data, is := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "data:")
		if !is {
			continue
		}
		if event := []byte(strings.TrimSpace(data)); json.Valid(event) {
			if whole := s.take(event); whole != nil {
				return d.answer(whole)
			}
		}
	}
	if said := s.message(d); len(said.Pieces) > 0 {
		return []message{said}
	}
	return []message{{"answer", []piece{textPiece("text", text)}}}
}

// stream is what has come of a stream.
type stream struct {
	blocks []*block
	byKey  map[string]*block
}

// block is a text, or a call with its arguments.
type block struct {
	kind, id, name string
	text           bytes.Buffer
}

// at returns the block of a key, which begins where it isn't there yet; nil: there are too many.
func (s *stream) at(key, kind string) *block {
	if b := s.byKey[key]; b != nil || len(s.blocks) >= mostPieces {
		return b
	}
	if s.byKey == nil {
		s.byKey = map[string]*block{}
	}
	b := &block{kind: kind}
	s.byKey[key], s.blocks = b, append(s.blocks, b)
	return b
}

func (s *stream) add(key, kind string, text []byte) {
	if !isText(text) {
		return
	}
	if b := s.at(key, kind); b != nil && b.text.Len() <= mostTexts {
		b.text.WriteString(strictjson.Text(text))
	}
}

// take reads an event. It returns the whole answer where the event has it.
func (s *stream) take(event []byte) (whole []byte) {
	has := membersOf(event)
	key := "block " + string(has["index"])
	switch kind := strictjson.Text(has["type"]); kind {
	case "response.completed", "response.incomplete", "response.failed":
		return has["response"]
	case "content_block_start":
		s.begin(key, membersOf(has["content_block"]))
	case "content_block_delta":
		delta := membersOf(has["delta"])
		s.add(key, "text", delta["text"])
		s.add(key, "thinking", delta["thinking"])
		s.add(key, "call", delta["partial_json"])
	case "response.output_text.delta":
		s.add("item "+string(has["output_index"]), "text", has["delta"])
	case "response.function_call_arguments.delta":
		s.add("item "+string(has["output_index"]), "call", has["delta"])
	case "error":
		return event
	}
	for choice := range strictjson.Elements(has["choices"]) {
		s.chunk(membersOf(choice))
	}
	return nil
}

// begin begins a block of Anthropic's dialect.
func (s *stream) begin(key string, has map[string][]byte) {
	kind := "text"
	switch strictjson.Text(has["type"]) {
	case "tool_use":
		kind = "call"
	case "thinking":
		kind = "thinking"
	}
	if b := s.at(key, kind); b != nil {
		b.id, b.name = strictjson.Text(has["id"]), strictjson.Text(has["name"])
	}
	s.add(key, kind, has["text"])
}

// chunk reads a part of a choice of a chat.
func (s *stream) chunk(choice map[string][]byte) {
	delta, of := membersOf(choice["delta"]), string(choice["index"])
	s.add(of+" thinking", "thinking", first(delta["reasoning_content"], delta["reasoning"]))
	s.add(of+" text", "text", first(delta["content"], delta["refusal"]))
	for called := range strictjson.Elements(delta["tool_calls"]) {
		has := membersOf(called)
		function, key := membersOf(has["function"]), of+" call "+string(has["index"])
		b := s.at(key, "call")
		if b == nil {
			return
		}
		if id := strictjson.Text(has["id"]); id != "" {
			b.id = id
		}
		b.name += strictjson.Text(function["name"])
		s.add(key, "call", function["arguments"])
	}
}

// message is what the stream said.
func (s *stream) message(d *dialogue) message {
	said := message{Who: "assistant"}
	for _, b := range s.blocks {
		switch {
		case b.kind == "call":
			said.Pieces = append(said.Pieces, d.call(quoted(b.id), quoted(b.name), b.text.Bytes()))
		case b.text.Len() > 0:
			said.Pieces = append(said.Pieces, textPiece(b.kind, b.text.String()))
		}
	}
	return said
}

func quoted(text string) []byte {
	raw, err := json.Marshal(text)
	if err != nil {
		return []byte(strconv.Quote(""))
	}
	return raw
}
