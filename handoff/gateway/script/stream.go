package script

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// pieceBytes is how much of a text comes in one event of a stream.
const pieceBytes = 24

// pieces cuts a text between characters.
func pieces(text string) []string {
	var all []string
	for len(text) > pieceBytes {
		at := pieceBytes
		for !utf8.RuneStart(text[at]) {
			at--
		}
		all, text = append(all, text[:at]), text[at:]
	}
	return append(all, text)
}

// events is a stream that is being written.
type events struct {
	bytes.Buffer
	n int
}

func (e *events) data(v any) { _, _ = fmt.Fprintf(e, "data: %s\n\n", encode(v)) }

// named writes an event that repeats its name in its data, as two dialects have it.
func (e *events) named(name string, v object) {
	v["type"] = name
	_, _ = fmt.Fprintf(e, "event: %s\n", name)
	e.data(v)
}

// numbered is named, with the number of the event.
func (e *events) numbered(name string, v object) {
	v["sequence_number"] = e.n
	e.n++
	e.named(name, v)
}

func (r request) streamed(st step) []byte {
	var e events
	switch r.dialect {
	case "messages":
		r.streamMessage(&e, st)
	case "responses":
		r.streamResponse(&e, st)
	default:
		r.streamChat(&e, st)
	}
	return e.Bytes()
}

func (r request) streamChat(e *events, st step) {
	chunk := func(delta object, finish any) {
		if _, reasons := delta["reasoning_content"]; st.reasoning != "" && !reasons {
			delta["reasoning_content"] = nil // models that reason write it in each chunk
		}
		e.data(object{
			"id": "script", "object": "chat.completion.chunk", "created": 0, "model": r.model,
			"choices": array{object{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	if st.reasoning != "" {
		for _, piece := range pieces(st.reasoning) {
			chunk(object{"content": nil, "reasoning_content": piece}, nil)
		}
	}
	if st.text != "" {
		for _, piece := range pieces(st.text) {
			chunk(object{"content": piece}, nil)
		}
	}
	for i, call := range st.calls {
		chunk(object{"tool_calls": array{object{
			"index": i, "id": callID(i), "type": "function",
			"function": object{"name": call.name, "arguments": call.arguments},
		}}}, nil)
	}
	chunk(object{}, finish(st))
	if r.usage {
		e.data(object{
			"id": "script", "object": "chat.completion.chunk", "created": 0, "model": r.model,
			"choices": array{}, "usage": chatUsage(st),
		})
	}
	e.WriteString("data: [DONE]\n\n")
}

func (r request) streamMessage(e *events, st step) {
	start := r.message(st, array{}, 1)
	start["stop_reason"] = nil
	e.named("message_start", object{"message": start})
	for i, block := range r.blocks(st) {
		r.streamBlock(e, i, block.(object), st)
	}
	whole := r.message(st, nil, st.usage.output)
	e.named("message_delta", object{
		"delta": object{"stop_reason": whole["stop_reason"], "stop_sequence": nil},
		"usage": object{"output_tokens": st.usage.output},
	})
	e.named("message_stop", object{})
}

func (request) streamBlock(e *events, i int, block object, st step) {
	delta := func(v object) { e.named("content_block_delta", object{"index": i, "delta": v}) }
	if block["type"] == "text" {
		e.named("content_block_start", object{"index": i, "content_block": object{"type": "text", "text": ""}})
		for _, piece := range pieces(st.text) {
			delta(object{"type": "text_delta", "text": piece})
		}
	} else {
		e.named("content_block_start", object{"index": i, "content_block": object{
			"type": "tool_use", "id": block["id"], "name": block["name"], "input": object{},
		}})
		delta(object{"type": "input_json_delta", "partial_json": string(encode(block["input"]))})
	}
	e.named("content_block_stop", object{"index": i})
}

func (r request) streamResponse(e *events, st step) {
	e.numbered("response.created", object{"response": r.response(st, "in_progress", array{})})
	for i, item := range r.items(st) {
		item := item.(object)
		if item["type"] == "message" {
			r.streamText(e, i, item, st)
			continue
		}
		began := object{}
		for name, value := range item {
			began[name] = value
		}
		began["arguments"], began["status"] = "", "in_progress"
		e.numbered("response.output_item.added", object{"output_index": i, "item": began})
		e.numbered("response.function_call_arguments.delta",
			object{"output_index": i, "item_id": item["id"], "delta": item["arguments"]})
		e.numbered("response.function_call_arguments.done",
			object{"output_index": i, "item_id": item["id"], "arguments": item["arguments"]})
		e.numbered("response.output_item.done", object{"output_index": i, "item": item})
	}
	e.numbered("response.completed", object{"response": r.response(st, "completed", r.items(st))})
}

func (request) streamText(e *events, i int, item object, st step) {
	at := func(v object) object {
		v["output_index"], v["content_index"], v["item_id"] = i, 0, item["id"]
		return v
	}
	part := func(text string) object { return object{"type": "output_text", "text": text, "annotations": array{}} }
	e.numbered("response.output_item.added", object{"output_index": i, "item": object{
		"type": "message", "id": item["id"], "status": "in_progress", "role": "assistant", "content": array{},
	}})
	e.numbered("response.content_part.added", at(object{"part": part("")}))
	for _, piece := range pieces(st.text) {
		e.numbered("response.output_text.delta", at(object{"delta": piece}))
	}
	e.numbered("response.output_text.done", at(object{"text": st.text}))
	e.numbered("response.content_part.done", at(object{"part": part(st.text)}))
	e.numbered("response.output_item.done", object{"output_index": i, "item": item})
}
