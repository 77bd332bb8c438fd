package script

import (
	"hash/fnv"
	"strconv"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// whole is an answer that isn't streamed.
func (r request) whole(st step) object {
	switch r.dialect {
	case "messages":
		return r.message(st, r.blocks(st), st.usage.output)
	case "responses":
		return r.response(st, "completed", r.items(st))
	}
	message := object{"role": "assistant", "content": textOrNull(st)}
	if st.reasoning != "" {
		message["reasoning_content"] = st.reasoning
	}
	if calls := chatCalls(st); len(calls) > 0 {
		message["tool_calls"] = calls
	}
	return object{
		"id": "script", "object": "chat.completion", "created": 0, "model": r.model,
		"choices": array{object{"index": 0, "message": message, "finish_reason": finish(st)}},
		"usage":   chatUsage(st),
	}
}

func textOrNull(st step) any {
	if st.text == "" && len(st.calls) > 0 {
		return nil
	}
	return st.text
}

func finish(st step) string {
	if len(st.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func callID(i int) string { return "call_" + strconv.Itoa(i+1) }

func chatCalls(st step) array {
	var calls array
	for i, c := range st.calls {
		calls = append(calls,
			object{"id": callID(i), "type": "function", "function": object{"name": c.name, "arguments": c.arguments}})
	}
	return calls
}

func chatUsage(st step) object {
	return object{
		"prompt_tokens": st.usage.input, "completion_tokens": st.usage.output,
		"total_tokens": st.usage.input + st.usage.output,
	}
}

func (r request) message(st step, blocks array, output int64) object {
	reason := "end_turn"
	if len(st.calls) > 0 {
		reason = "tool_use"
	}
	return object{
		"id": "script", "type": "message", "role": "assistant", "model": r.model, "content": blocks,
		"stop_reason": reason, "stop_sequence": nil,
		"usage": object{"input_tokens": st.usage.input, "output_tokens": output},
	}
}

func (request) blocks(st step) array {
	blocks := array{}
	if st.text != "" {
		blocks = append(blocks, object{"type": "text", "text": st.text})
	}
	for i, c := range st.calls {
		input, err := strictjson.Decode([]byte(c.arguments))
		if err != nil {
			input = object{}
		}
		blocks = append(blocks, object{"type": "tool_use", "id": callID(i), "name": c.name, "input": input})
	}
	return blocks
}

func (r request) response(st step, status string, items array) object {
	whole := object{
		"id": "script", "object": "response", "created_at": 0, "status": status, "model": r.model, "output": items,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{}, "parallel_tool_calls": true,
		"temperature": nil, "tool_choice": "auto", "tools": array{}, "top_p": nil,
	}
	if status == "completed" {
		whole["usage"] = object{
			"input_tokens": st.usage.input, "output_tokens": st.usage.output,
			"total_tokens":         st.usage.input + st.usage.output,
			"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
		}
	}
	return whole
}

func (request) items(st step) array {
	items := array{}
	if st.text != "" {
		items = append(items, object{
			"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
			"content": array{object{"type": "output_text", "text": st.text, "annotations": array{}}},
		})
	}
	for i, c := range st.calls {
		items = append(items, object{
			"type": "function_call", "id": "fc_" + strconv.Itoa(i+1), "call_id": callID(i),
			"name": c.name, "arguments": c.arguments, "status": "completed",
		})
	}
	return items
}

// embeddings are made of the text alone, so that equal texts have equal ones.
func (r request) embeddings(body []byte) []byte {
	v, _ := strictjson.Decode(body)
	asked, _ := v.(object)
	inputs, ok := asked["input"].(array)
	if !ok {
		inputs = array{asked["input"]}
	}
	data := array{}
	for i, input := range inputs {
		data = append(data, object{"object": "embedding", "index": i, "embedding": vector(encode(input))})
	}
	tokens := len(body)/4 + 1
	return encode(object{
		"object": "list", "model": r.model, "data": data,
		"usage": object{"prompt_tokens": tokens, "total_tokens": tokens},
	})
}

const dimensions = 8

func vector(text []byte) array {
	h := fnv.New64a()
	_, _ = h.Write(text) // it has no error
	sum := h.Sum64()
	var v array
	for i := range dimensions {
		v = append(v, float64(sum>>(8*i)&0xff)/255)
	}
	return v
}
