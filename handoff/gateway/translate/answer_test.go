package translate

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// spec is an answer as a person would tell it.
type spec struct {
	text, refusal string
	calls         []called
	stop          string // as Messages calls it
	sequence      string
}

type called struct{ ID, Name, Arguments string }

var (
	one   = called{"call_1", "ocr", `{"grüße":"👋","page":1}`}
	two   = called{"call_2", "now", `{}`}
	specs = map[string]spec{
		"a text":               {text: "Grüße 👋, \"friends\"", stop: "end_turn"},
		"nothing":              {stop: "end_turn"},
		"a text that is cut":   {text: "Hello and", stop: "max_tokens"},
		"a stop":               {text: "One, two", stop: "stop_sequence", sequence: "three"},
		"a filtered text":      {text: "Hm", stop: "refusal"},
		"a refusal":            {refusal: "I won't", stop: "end_turn"},
		"a call":               {calls: []called{one}, stop: "tool_use"},
		"a call of nothing":    {calls: []called{two}, stop: "tool_use"},
		"calls at once":        {calls: []called{one, two}, stop: "tool_use"},
		"a text and calls":     {text: "I look", calls: []called{one, two}, stop: "tool_use"},
		"a call, said to end":  {calls: []called{one}, stop: "end_turn"},
		"a call that is cut":   {calls: []called{one}, stop: "max_tokens"},
		"a text of many bytes": {text: strings.Repeat("0123456789é", 60), stop: "end_turn"},
	}
	counted = &Usage{Input: 100, Cached: 40, CacheWrite: 10, Output: 30, Reasoning: 20}
)

// can reports whether a dialect can say a spec, as a provider.
func (s spec) can(d catalog.Dialect) bool {
	switch {
	case d == catalog.Messages:
		return s.refusal == "" && (s.stop != "end_turn" || len(s.calls) == 0)
	case s.sequence != "":
		return false
	}
	return true
}

// in is what an asker of a dialect sees of a spec that a provider has said.
func (s spec) in(d catalog.Dialect) spec {
	if len(s.calls) > 0 && s.stop == "end_turn" {
		s.stop = "tool_use"
	}
	if d == catalog.Messages {
		if s.refusal != "" {
			s.text, s.refusal, s.stop = s.refusal, "", "refusal"
		}
		return s
	}
	if s.sequence != "" {
		s.sequence, s.stop = "", "end_turn"
	}
	if d == catalog.Responses && s.stop == "tool_use" {
		s.stop = "end_turn"
	}
	return s
}

var (
	toChat      = map[string]string{"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls", "refusal": "content_filter"}
	fromChat    = map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
	toResponses = map[string]string{"max_tokens": "max_output_tokens", "refusal": "content_filter"}
)

// plainly said by a provider of a dialect, with thoughts before it.
func (s spec) plain(d catalog.Dialect) []byte {
	switch d {
	case catalog.Chat:
		message := object{"role": "assistant", "content": nil, "reasoning_content": "Hm", "annotations": array{}}
		putText(message, "content", s.text)
		putText(message, "refusal", s.refusal)
		for i, c := range s.calls {
			calls, _ := message["tool_calls"].(array)
			message["tool_calls"] = append(calls, object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
		}
		return encode(object{"id": "a1", "object": "chat.completion", "created": 5, "model": "up", "system_fingerprint": "f", "choices": array{object{"index": 0, "message": message, "finish_reason": toChat[s.stop]}}})
	case catalog.Responses:
		return encode(s.response(s.items()))
	}
	content := array{object{"type": "thinking", "thinking": "Hm", "signature": "s"}, object{"type": "redacted_thinking", "data": "x"}}
	if s.text != "" {
		content = append(content, object{"type": "text", "text": s.text, "citations": nil})
	}
	for _, c := range s.calls {
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments), "caller": object{"type": "direct"}})
	}
	o := object{"id": "a1", "type": "message", "role": "assistant", "model": "up", "content": content, "stop_reason": s.stop, "stop_sequence": nil}
	putText(o, "stop_sequence", s.sequence)
	return encode(o)
}

func (s spec) items() array {
	items := array{object{"type": "reasoning", "id": "rs_1", "summary": array{}}}
	said := array{}
	if s.text != "" {
		said = append(said, object{"type": "output_text", "text": s.text, "annotations": array{}})
	}
	if s.refusal != "" {
		said = append(said, object{"type": "refusal", "refusal": s.refusal})
	}
	if len(said) > 0 {
		items = append(items, object{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": said})
	}
	for i, c := range s.calls {
		items = append(items, object{"type": "function_call", "id": fmt.Sprint("fc_", i), "call_id": c.ID, "name": c.Name, "arguments": c.Arguments, "status": "completed"})
	}
	return items
}

func (s spec) response(items array) object {
	o := object{"id": "a1", "object": "response", "created_at": 5.5, "model": "up", "status": "completed", "output": items, "error": nil, "incomplete_details": nil}
	if reason := toResponses[s.stop]; reason != "" {
		o["status"], o["incomplete_details"] = "incomplete", object{"reason": reason}
	}
	return o
}

// cut cuts a text into pieces of whole characters.
func cut(text string, size int) (all []string) {
	now := ""
	for _, c := range text {
		if now += string(c); len(now) >= size {
			all, now = append(all, now), ""
		}
	}
	return append(all, now)
}

// events are the data of a stream.
func (s spec) events(d catalog.Dialect, size int) (all []string) {
	add := func(o object) { all = append(all, string(encode(o))) }
	switch d {
	case catalog.Chat:
		chunk := func(delta object, stop any) {
			add(object{"id": "a1", "object": "chat.completion.chunk", "created": 5, "model": "up", "choices": array{object{"index": 0, "delta": delta, "finish_reason": stop}}, "usage": nil})
		}
		s.chatEvents(chunk, size)
		add(object{"id": "a1", "choices": array{}, "usage": object{}})
		return append(all, "[DONE]")
	case catalog.Responses:
		s.responsesEvents(func(name string, o object) { o["type"] = name; add(o) }, size)
		return all
	}
	s.messagesEvents(func(name string, o object) { o["type"] = name; add(o) }, size)
	return all
}

func (s spec) chatEvents(chunk func(object, any), size int) {
	chunk(object{"role": "assistant", "content": "", "refusal": nil}, nil)
	chunk(object{"content": nil, "reasoning_content": "Hm"}, nil)
	for _, piece := range cut(s.text, size) {
		chunk(object{"content": piece}, nil)
	}
	for _, piece := range cut(s.refusal, size) {
		chunk(object{"refusal": piece}, nil)
	}
	for i, c := range s.calls {
		call := object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}
		for _, piece := range append(cut(c.Arguments, size), "") {
			if c.Arguments != "{}" {
				call["function"].(object)["arguments"] = piece
			}
			chunk(object{"tool_calls": array{call}}, nil)
			call = object{"index": i, "function": object{}}
		}
	}
	chunk(object{}, toChat[s.stop])
}

func (s spec) responsesEvents(event func(string, object), size int) {
	event("response.created", object{"response": object{"id": "a1", "model": "up", "created_at": 5, "status": "in_progress", "output": array{}}})
	event("response.in_progress", object{"response": object{"id": "a1"}})
	for i, item := range s.items() {
		item := item.(object)
		began := object{"type": item["type"], "id": item["id"], "call_id": item["call_id"], "name": item["name"], "arguments": "", "content": array{}}
		event("response.output_item.added", object{"output_index": i, "item": began})
		said, _ := item["content"].(array)
		for j, part := range said {
			part := part.(object)
			name, text := "response.output_text", part["text"]
			if part["type"] == "refusal" {
				name, text = "response.refusal", part["refusal"]
			}
			event("response.content_part.added", object{"output_index": i, "content_index": j, "part": object{"type": part["type"], "text": ""}})
			if size < 1000 { // some have it whole at the end
				for _, piece := range cut(text.(string), size) {
					event(name+".delta", object{"output_index": i, "content_index": j, "delta": piece})
				}
			}
			event(name+".done", object{"output_index": i, "content_index": j, "text": text, "refusal": text})
			event("response.content_part.done", object{"output_index": i, "content_index": j, "part": part})
		}
		if arguments, _ := item["arguments"].(string); item["type"] == "function_call" {
			if size < 1000 {
				for _, piece := range cut(arguments, size) {
					event("response.function_call_arguments.delta", object{"output_index": i, "delta": piece})
				}
			}
			event("response.function_call_arguments.done", object{"output_index": i, "arguments": arguments})
		}
		event("response.output_item.done", object{"output_index": i, "item": item})
	}
	end := s.response(s.items())
	event("response."+end["status"].(string), object{"response": end})
}

func (s spec) messagesEvents(event func(string, object), size int) {
	event("message_start", object{"message": object{"id": "a1", "model": "up", "role": "assistant", "content": array{}, "usage": object{"input_tokens": 1}}})
	event("ping", object{})
	at := 0
	block := func(began object, deltas ...object) {
		event("content_block_start", object{"index": at, "content_block": began})
		for _, d := range deltas {
			event("content_block_delta", object{"index": at, "delta": d})
		}
		event("content_block_stop", object{"index": at})
		at++
	}
	block(object{"type": "thinking", "thinking": ""}, object{"type": "thinking_delta", "thinking": "Hm"}, object{"type": "signature_delta", "signature": "s"})
	if s.text != "" {
		var pieces []object
		for _, piece := range cut(s.text, size) {
			pieces = append(pieces, object{"type": "text_delta", "text": piece})
		}
		block(object{"type": "text", "text": ""}, pieces...)
	}
	for _, c := range s.calls {
		pieces := []object{{"type": "input_json_delta", "partial_json": ""}}
		for _, piece := range cut(c.Arguments, size) {
			if c.Arguments != "{}" {
				pieces = append(pieces, object{"type": "input_json_delta", "partial_json": piece})
			}
		}
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, pieces...)
	}
	delta := object{"stop_reason": s.stop, "stop_sequence": nil}
	putText(delta, "stop_sequence", s.sequence)
	event("message_delta", object{"delta": delta, "usage": object{"output_tokens": 1}})
	event("message_stop", object{})
}

func translation(t testing.TB, p pair) *Translation {
	body := map[catalog.Dialect]string{
		catalog.Chat:      `{"model":"m","messages":[{"role":"user","content":"Hi"}],"stream_options":{"include_usage":true}}`,
		catalog.Responses: `{"model":"m","input":"Hi","tool_choice":"required","temperature":0.5}`,
		catalog.Messages:  `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`,
	}[p.asker]
	got, err := New(p.asker, p.provider, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAnswersSayTheSameInTheOtherDialect(t *testing.T) {
	t.Parallel()
	count := 0
	for _, p := range pairs() {
		for name, s := range specs {
			if !s.can(p.provider) {
				continue
			}
			t.Run(p.String()+", "+name, func(t *testing.T) {
				count++
				tr := translation(t, p)
				body, err := tr.Answer(s.plain(p.provider), counted)
				if err != nil {
					t.Fatal(err)
				}
				want := s.in(p.asker)
				if got := readBack(t, p.asker, decoded(t, string(body)).(object)); !reflect.DeepEqual(got, want) {
					t.Errorf("%s\n%+v, not %+v", body, got, want)
				}
				for _, size := range []int{1, 7, 2000} {
					count++
					checkStream(t, tr, p, s.events(p.provider, size), want)
				}
			})
		}
	}
	if t.Logf("%d answers", count); count < 200 {
		t.Errorf("there are %d answers alone", count)
	}
}

func checkStream(t *testing.T, tr *Translation, p pair, events []string, want spec) {
	t.Helper()
	s := tr.Stream()
	var out strings.Builder
	for _, e := range events {
		raw, err := s.Event([]byte(e), counted)
		if err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		out.Write(raw)
	}
	raw, err := s.End(counted)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(raw)
	got, err := assemble(t, p.asker, out.String())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n%v\n%+v, not %+v", out.String(), err, got, want)
	}
}

// readBack reads a plain answer as a client does.
func readBack(t testing.TB, d catalog.Dialect, o object) (s spec) {
	t.Helper()
	usage := fmt.Sprint(o["usage"])
	switch d {
	case catalog.Chat:
		choice := o["choices"].(array)[0].(object)
		message := choice["message"].(object)
		s.text, _ = message["content"].(string)
		s.refusal, _ = message["refusal"].(string)
		calls, _ := message["tool_calls"].(array)
		for _, c := range calls {
			c := c.(object)
			f := c["function"].(object)
			s.calls = append(s.calls, called{c["id"].(string), f["name"].(string), f["arguments"].(string)})
		}
		s.stop = fromChat[choice["finish_reason"].(string)]
		checkWords(t, usage, "prompt_tokens:100", "cached_tokens:40", "completion_tokens:30", "reasoning_tokens:20", "total_tokens:130")
	case catalog.Responses:
		for _, item := range o["output"].(array) {
			item := item.(object)
			if item["type"] == "function_call" {
				s.calls = append(s.calls, called{item["call_id"].(string), item["name"].(string), item["arguments"].(string)})
			}
			parts, _ := item["content"].(array)
			for _, p := range parts {
				p := p.(object)
				text, _ := p["text"].(string)
				refusal, _ := p["refusal"].(string)
				s.text, s.refusal = s.text+text, s.refusal+refusal
			}
		}
		s.stop = "end_turn"
		if details, _ := o["incomplete_details"].(object); o["status"] == "incomplete" {
			s.stop = map[any]string{"max_output_tokens": "max_tokens", "content_filter": "refusal"}[details["reason"]]
		}
		checkWords(t, usage, "input_tokens:100", "cached_tokens:40", "output_tokens:30", "reasoning_tokens:20")
		if o["tool_choice"] != "required" || fmt.Sprint(o["temperature"]) != "0.5" {
			t.Errorf("it repeats nothing of the request: %v", o)
		}
	default:
		for _, block := range o["content"].(array) {
			block := block.(object)
			if block["type"] == "tool_use" {
				s.calls = append(s.calls, called{block["id"].(string), block["name"].(string), string(encode(block["input"]))})
			} else {
				s.text += block["text"].(string)
			}
		}
		s.stop, _ = o["stop_reason"].(string)
		s.sequence, _ = o["stop_sequence"].(string)
		checkWords(t, usage, "input_tokens:50", "cache_read_input_tokens:40", "cache_creation_input_tokens:10", "output_tokens:30")
	}
	return s
}

func checkWords(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s has no %s", text, w)
		}
	}
}

// What an answer says that no word stands for is an error, and not half an answer.
func TestAnswersThatCanNotBeSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pair
		body, path string
	}{
		"a tool of the provider": {pair{catalog.Chat, catalog.Messages}, `{"content":[{"type":"server_tool_use","id":"x"}],"stop_reason":"end_turn"}`, "/content/0/type"},
		"a pause":                {pair{catalog.Chat, catalog.Messages}, `{"content":[],"stop_reason":"pause_turn"}`, "/stop_reason"},
		"a search":               {pair{catalog.Messages, catalog.Responses}, `{"output":[{"type":"web_search_call"}],"status":"completed"}`, "/output/0/type"},
		"two answers":            {pair{catalog.Responses, catalog.Chat}, `{"choices":[{"message":{"content":"a"}},{"message":{"content":"b"}}]}`, "/choices/1"},
		"a voice":                {pair{catalog.Responses, catalog.Chat}, `{"choices":[{"message":{"content":null,"audio":{"id":"x"}}}]}`, "/choices/0/message/audio"},
		"another reason":         {pair{catalog.Responses, catalog.Chat}, `{"choices":[{"message":{"content":"a"},"finish_reason":"tired"}]}`, "/choices/0/finish_reason"},
		"no object to call with": {pair{catalog.Messages, catalog.Chat}, `{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{"}}]}}]}`, "/choices/0/message/tool_calls/0/function/arguments"},
		"a call without an id":   {pair{catalog.Messages, catalog.Chat}, `{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}]}`, "/choices/0/message/tool_calls/0/function/arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := translation(t, c.pair).Answer([]byte(c.body), nil)
			var unsaid *Error
			if !errors.As(err, &unsaid) || unsaid.Path != c.path {
				t.Errorf("%v, and not at %s", err, c.path)
			}
		})
	}
}

func TestStreamsThatCanNotBeSaid(t *testing.T) {
	t.Parallel()
	chat := func(delta string) string { return `{"id":"1","choices":[{"index":0,"delta":` + delta + `}]}` }
	for name, c := range map[string]struct {
		pair
		events []string
	}{
		"mixed calls": {pair{catalog.Messages, catalog.Chat}, []string{
			chat(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`), chat(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"f","arguments":""}}]}`),
			chat(`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`),
		}},
		"one id for two":  {pair{catalog.Messages, catalog.Chat}, []string{chat(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"a","function":{"name":"f"}}]}`)}},
		"no name":         {pair{catalog.Responses, catalog.Chat}, []string{chat(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}`)}},
		"another answer":  {pair{catalog.Responses, catalog.Chat}, []string{`{"id":"1","choices":[{"index":1,"delta":{"content":"x"}}]}`}},
		"no JSON":         {pair{catalog.Responses, catalog.Chat}, []string{chat(`{"content":"x"}`), `{"id":`}},
		"an odd block":    {pair{catalog.Chat, catalog.Messages}, []string{`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"x"}}`}},
		"mixed blocks":    {pair{catalog.Chat, catalog.Messages}, []string{`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`}},
		"an odd item":     {pair{catalog.Chat, catalog.Responses}, []string{`{"type":"response.output_item.added","output_index":0,"item":{"type":"mcp_call"}}`}},
		"a lost argument": {pair{catalog.Chat, catalog.Responses}, []string{`{"type":"response.function_call_arguments.delta","output_index":3,"delta":"{"}`}},
		"too much":        {pair{catalog.Responses, catalog.Chat}, []string{chat(`{"content":"x"}`), chat(`{"content":"more"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := translation(t, c.pair).Stream()
			for i, e := range c.events {
				if name == "too much" && i == 1 {
					s.size = maxStream
				}
				_, err := s.Event([]byte(e), nil)
				if last := i == len(c.events)-1; last != (err != nil) {
					t.Fatalf("event %d: %v", i, err)
				}
			}
			if raw, err := s.Event([]byte(c.events[0]), nil); err == nil || raw != nil {
				t.Errorf("it goes on: %s", raw)
			}
			if raw, _ := s.End(nil); raw != nil {
				t.Errorf("it ends well: %s", raw)
			}
		})
	}
}

func TestTheCountsOfAStreamComeWhereTheyAreAsked(t *testing.T) {
	t.Parallel()
	for _, options := range []string{"", `,"stream_options":{"include_usage":true}`} {
		tr, err := New(catalog.Chat, catalog.Messages, []byte(`{"model":"m","messages":[]`+options+`}`))
		if err != nil {
			t.Fatal(err)
		}
		s := tr.Stream()
		out, err := s.End(counted)
		if err != nil || strings.Contains(string(out), `"prompt_tokens":100`) != (options != "") {
			t.Errorf("%q: %s %v", options, out, err)
		}
	}
}
