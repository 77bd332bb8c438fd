package translate

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// sse are the events of a stream: their names, "" for none, and their data.
func sse(t testing.TB, text string) (names []string, data []string) {
	t.Helper()
	for _, event := range strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		name := ""
		if rest, named := strings.CutPrefix(event, "event: "); named {
			name, event, _ = strings.Cut(rest, "\n")
		}
		body, ok := strings.CutPrefix(event, "data: ")
		if !ok || strings.Contains(body, "\n") {
			t.Fatalf("no event: %q", event)
		}
		names, data = append(names, name), append(data, body)
	}
	return names, data
}

// assemble puts a stream together as strict clients do: what comes in another order than the vendor's is an error.
func assemble(t testing.TB, d catalog.Dialect, text string) (spec, error) {
	t.Helper()
	names, data := sse(t, text)
	switch d {
	case catalog.Chat:
		return assembleChat(t, data)
	case catalog.Responses:
		return assembleResponses(t, names, data)
	}
	return assembleMessages(t, names, data)
}

func assembleChat(t testing.TB, data []string) (spec, error) {
	message, calls := object{"content": "", "refusal": ""}, array{}
	stop, usage := any(nil), any(nil)
	for i, text := range data[:len(data)-1] {
		chunk := decoded(t, text).(object)
		if chunk["object"] != "chat.completion.chunk" || chunk["id"] != "a1" {
			return spec{}, fmt.Errorf("chunk %d: %s", i, text)
		}
		if usage = chunk["usage"]; usage != nil {
			if len(chunk["choices"].(array)) != 0 || i != len(data)-2 {
				return spec{}, fmt.Errorf("counts in chunk %d", i)
			}
			continue
		}
		choice := chunk["choices"].(array)[0].(object)
		delta := choice["delta"].(object)
		if (delta["role"] == "assistant") != (i == 0) || stop != nil {
			return spec{}, fmt.Errorf("chunk %d: %s", i, text)
		}
		stop = choice["finish_reason"]
		for _, name := range []string{"content", "refusal"} {
			piece, _ := delta[name].(string)
			message[name] = message[name].(string) + piece
		}
		parts, _ := delta["tool_calls"].(array)
		for _, part := range parts {
			part := part.(object)
			at, _ := strconv.Atoi(fmt.Sprint(part["index"]))
			if at == len(calls) && part["id"] != nil && part["type"] == "function" {
				calls = append(calls, part)
				continue
			}
			if at != len(calls)-1 || part["id"] != nil {
				return spec{}, fmt.Errorf("chunk %d: %s", i, text)
			}
			f := calls[at].(object)["function"].(object)
			f["arguments"] = f["arguments"].(string) + part["function"].(object)["arguments"].(string)
		}
	}
	if message["tool_calls"] = calls; data[len(data)-1] != "[DONE]" || stop == nil {
		return spec{}, fmt.Errorf("it ends with %s", data[len(data)-1])
	}
	return readBack(t, catalog.Chat, object{"choices": array{object{"message": message, "finish_reason": stop}}, "usage": usage}), nil
}

// assembleResponses keeps what was said in pieces, and compares it with what the events say at the end of each.
func assembleResponses(t testing.TB, names, data []string) (spec, error) {
	items, said := array{}, map[string]string{} // by the place
	open := map[string]bool{}
	for i, text := range data {
		e := decoded(t, text).(object)
		place := fmt.Sprint(e["output_index"], "/", e["content_index"])
		bad := func() (spec, error) { return spec{}, fmt.Errorf("event %d: %s (%v)", i, text, open) }
		if e["type"] != names[i] || fmt.Sprint(e["sequence_number"]) != strconv.Itoa(i) {
			return bad()
		}
		index, _ := strconv.Atoi(fmt.Sprint(e["output_index"]))
		switch name := names[i]; name {
		case "response.created", "response.in_progress":
			if i > 1 || e["response"].(object)["status"] != "in_progress" {
				return bad()
			}
		case "response.output_item.added":
			if index != len(items) || open["item"] {
				return bad()
			}
			open["item"], items = true, append(items, e["item"])
		case "response.output_item.done":
			whole := e["item"].(object)
			if !open["item"] || open["part"] || index != len(items)-1 || whole["id"] != items[index].(object)["id"] || whole["status"] != "completed" {
				return bad()
			}
			open["item"], items[index] = false, whole
		case "response.content_part.added":
			if open["part"] || !open["item"] || e["item_id"] != items[index].(object)["id"] {
				return bad()
			}
			open["part"] = true
		case "response.content_part.done":
			part := e["part"].(object)
			whole, _ := part["text"].(string)
			refusal, _ := part["refusal"].(string)
			if !open["part"] || said[place] != whole+refusal {
				return bad()
			}
			open["part"] = false
		case "response.output_text.delta", "response.refusal.delta", "response.function_call_arguments.delta":
			if index != len(items)-1 || open["part"] == strings.Contains(name, "function") || e["item_id"] != items[index].(object)["id"] {
				return bad()
			}
			said[place] += e["delta"].(string)
		case "response.output_text.done", "response.refusal.done", "response.function_call_arguments.done":
			whole := ""
			for _, field := range []string{"text", "refusal", "arguments"} {
				text, _ := e[field].(string)
				whole += text
			}
			if whole != said[place] {
				return bad()
			}
		case "response.completed", "response.incomplete":
			r := e["response"].(object)
			if i != len(data)-1 || open["item"] || "response."+fmt.Sprint(r["status"]) != name || string(encode(r["output"])) != string(encode(items)) || r["id"] != "a1" {
				return bad()
			}
			return readBack(t, catalog.Responses, r), nil
		default:
			return bad()
		}
	}
	return spec{}, fmt.Errorf("it has no end")
}

func assembleMessages(t testing.TB, names, data []string) (spec, error) {
	blocks, open := array{}, false
	whole := object{}
	for i, text := range data {
		e := decoded(t, text).(object)
		bad := func() (spec, error) { return spec{}, fmt.Errorf("event %d: %s", i, text) }
		index, _ := strconv.Atoi(fmt.Sprint(e["index"]))
		if e["type"] != names[i] {
			return bad()
		}
		switch names[i] {
		case "message_start":
			m := e["message"].(object)
			if i != 0 || m["id"] != "a1" || m["role"] != "assistant" || m["stop_reason"] != nil {
				return bad()
			}
		case "content_block_start":
			block := e["content_block"].(object)
			if index != len(blocks) || open || block["type"] == "tool_use" && string(encode(block["input"])) != "{}" {
				return bad()
			}
			block["pieces"] = ""
			blocks, open = append(blocks, block), true
		case "content_block_delta":
			delta, block := e["delta"].(object), blocks[len(blocks)-1].(object)
			piece, isText := delta["text"].(string)
			arguments, _ := delta["partial_json"].(string)
			if index != len(blocks)-1 || !open || isText != (block["type"] == "text") {
				return bad()
			}
			block["pieces"] = block["pieces"].(string) + piece + arguments
		case "content_block_stop":
			block := blocks[len(blocks)-1].(object)
			if index != len(blocks)-1 || !open {
				return bad()
			}
			if open = false; block["type"] == "text" {
				block["text"] = block["pieces"]
			} else {
				block["input"] = json.RawMessage(block["pieces"].(string))
			}
		case "message_delta":
			whole = e["delta"].(object)
			whole["usage"], whole["content"] = e["usage"], blocks
		case "message_stop":
			if i != len(data)-1 || open {
				return bad()
			}
			return readBack(t, catalog.Messages, whole), nil
		}
	}
	return spec{}, fmt.Errorf("it has no end")
}
