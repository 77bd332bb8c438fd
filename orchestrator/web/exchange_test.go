package web

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// lines are the messages of a list, a piece a line.
func lines(all []message) (list []string) {
	for _, m := range all {
		for _, p := range m.Pieces {
			list = append(list, strings.Join([]string{m.Who, p.Kind, p.Name, strings.Join(strings.Fields(p.Text), " ")}, "|"))
		}
		if len(m.Pieces) == 0 {
			list = append(list, m.Who)
		}
	}
	return list
}

const chatAsked = `{"model":"m","messages":[
	{"role":"system","content":"Be careful."},
	{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},
	{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]},
	{"role":"tool","tool_call_id":"c1","content":"{\"seen\":true}"},
	{"role":"user","content":7},"loose",9,{"odd":[1]}],
	"tools":[{"type":"function","function":{"name":"look","description":"Looks."}},{"type":"web_search"}]}`

const messagesAsked = `{"system":[{"type":"text","text":"Be careful."}],"messages":[{"role":"user","content":"Hi"},
	{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t1","name":"look","input":{"at":1}}]},
	{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"seen"},{"type":"image","source":{}}]},{"type":"document","x":1}]}],
	"tools":[{"name":"look","description":"Looks.","input_schema":{}}]}`

const responsesAsked = `{"instructions":"Be careful.","input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]},
	{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
	{"type":"function_call","call_id":"f1","name":"look","arguments":"{\"at\":1}"},
	{"type":"function_call_output","call_id":"f1","output":"seen"}],"tools":[{"type":"function","name":"look"}]}`

func TestAnExchangeIsReadInEachDialect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, asked, answer string
		want, answered      []string
		tools               []offered
	}{
		{"chat", chatAsked, `{"choices":[{"message":{"role":"assistant","content":"A pier."}}]}`, []string{
			"system|text||Be careful.", "user|text||What is this?", "user|picture||", "assistant|thinking||hm",
			`assistant|call|look|{ "at": 1 }`, `tool|result|look|{ "seen": true }`, "user|json||7", "user|text||loose", "—|json||9",
			`—|json||{ "odd": [ 1 ] }`,
		}, []string{"assistant|text||A pier."}, []offered{{"look", "Looks."}, {"web_search", ""}}},
		{"messages", messagesAsked, `{"type":"message","role":"assistant","content":[{"type":"text","text":"A pier."}]}`, []string{
			"system|text||Be careful.", "user|text||Hi", "assistant|thinking||hm", `assistant|call|look|{ "at": 1 }`,
			"user|result|look|seen", "user|picture|look|", `user|json||{ "type": "document", "x": 1 }`,
		}, []string{"assistant|text||A pier."}, []offered{{"look", "Looks."}}},
		{"responses", responsesAsked, `{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"A pier."}]},{"type":"function_call","call_id":"f2","name":"look","arguments":"no JSON"}]}`, []string{
			"system|text||Be careful.", "user|text||Hi", "assistant|thinking||hm", `assistant|call|look|{ "at": 1 }`, "tool|result|look|seen",
		}, []string{"assistant|text||A pier.", "assistant|call|look|no JSON"}, []offered{{"look", ""}}},
		{"an input that is a text", `{"input":"Hi"}`, `{"error":{"message":"too long"}}`, []string{"user|text||Hi"}, []string{"error|text||too long"}, nil},
		{"something else", `{"messages":{"a":1}}`, `[1]`, []string{`user|json||{ "a": 1 }`}, []string{"answer|json||[ 1 ]"}, nil},
		{"nothing", `7`, ``, nil, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDialogue(api.ModelExchange{Request: json.RawMessage(c.asked), Answer: json.RawMessage(c.answer)})
			if diff := cmp.Diff(c.want, lines(d.Messages)) + cmp.Diff(c.answered, lines(d.Answer)) + cmp.Diff(c.tools, d.Tools); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAStreamIsPutTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream string
		want   []string
	}{
		"chat": {`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"A "}}]}

data: {"choices":[{"index":0,"delta":{"content":"pier."}}]}
data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"look","arguments":"{\"at\""}}]}}]}
data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}
data: [DONE]
`, []string{"assistant|text||A pier.", `assistant|call|look|{ "at": 1 }`}},
		"messages": {`event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"A pier."}}
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"look","input":{}}}
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"at\":1}"}}
`, []string{"assistant|text||A pier.", `assistant|call|look|{ "at": 1 }`}},
		"responses": {`data: {"type":"response.output_text.delta","output_index":0,"delta":"A"}
data: {"type":"response.completed","response":{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"A pier."}]}]}}
`, []string{"assistant|text||A pier."}},
		"one that breaks off": {`data: {"type":"response.output_text.delta","output_index":0,"delta":"A"}` + "\ndata: {\"ty", []string{"assistant|text||A"}},
		"none":                {"<html>", []string{"answer|text||<html>"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, err := json.Marshal(c.stream)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, lines(newDialogue(api.ModelExchange{Request: []byte("{}"), Answer: answer}).Answer)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALongConversationShowsItsEnd(t *testing.T) {
	t.Parallel()
	one := `{"role":"user","content":"` + strings.Repeat("x", 40<<10) + `"}`
	d := newDialogue(api.ModelExchange{Request: []byte(`{"messages":[` + strings.Repeat(one+",", 50) + `{"role":"user","content":"the last"}]}`)})
	if d.Earlier < 30 || len(d.Messages)+int(d.Earlier) != 51 || lines(d.Messages[len(d.Messages)-1:])[0] != "user|text||the last" {
		t.Errorf("%d messages after %d", len(d.Messages), d.Earlier)
	}
	if first := d.Messages[0].Pieces[0]; !first.Folded() || first.Size != 40<<10 || !strings.HasSuffix(first.Text, "… (8.0 KiB more)") {
		t.Errorf("%d %s", first.Size, first.Text[len(first.Text)-20:])
	}
}

// What a page shows of a foreign exchange is bounded, and is text.
func FuzzExchange(f *testing.F) {
	for _, asked := range []string{chatAsked, messagesAsked, responsesAsked, `{"input":"a","tools":7}`, `{"messages":[[[[`} {
		f.Add(asked, `{"choices":[{"message":{"role":"assistant","content":"a"}}]}`)
		f.Add(asked, `"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n"`)
	}
	f.Add(`{}`, `"data: {\"type\":\"response.completed\",\"response\":\"data: {}\"}\n"`)
	fuzzbound.Run(f, func(t *testing.T, asked, answer string) {
		d := newDialogue(api.ModelExchange{Request: []byte(asked), Answer: []byte(answer)})
		if len(d.Tools) > mostTools {
			t.Fatalf("%d tools", len(d.Tools))
		}
		for _, m := range append(d.Messages, d.Answer...) {
			for _, p := range m.Pieces {
				if len(p.Text) > 2*mostText || !utf8.ValidString(p.Text) && utf8.ValidString(asked+answer) {
					t.Fatalf("a text of %d bytes", len(p.Text))
				}
				_, _ = p.Head(), p.Folded()
			}
		}
	})
}
