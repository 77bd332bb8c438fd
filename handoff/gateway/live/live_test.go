package live_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/live"
	"github.com/agent-on-demand/aod/handoff/gateway/script"
	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

const steps = `
- text: Grüße aus dem Hafen, der 1715 niederbrannte. 👋 And "more" of it.
- {text: The answer is 4., reasoning: Two and two are added first.}
- tool_calls: [{name: look, arguments: {at: "the harbour", deep: [1, {a: null}]}}, {name: final_answer, arguments: {text: "It \"burnt\" down\nin 1715", sure: true}}, {name: nothing, arguments: {}}]
- {text: I look first, tool_calls: [{name: look, arguments: {at: "x"}}]}
`

var dialects = []catalog.Dialect{catalog.Chat, catalog.Messages, catalog.Responses}

// answersOf are a script's answers in a dialect: each plain, and as the data of its events.
func answersOf(t testing.TB, d catalog.Dialect, step string) (plain []byte, events [][]byte) {
	t.Helper()
	for _, asked := range []string{"false", "true "} {
		s, findings := script.Read("steps", []byte(step))
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		answer, err := s.Answer(t.Context(), "run", string(d), []byte(`{"model":"m","stream":`+asked+`,"stream_options":{"include_usage":true}}`))
		if err != nil {
			t.Fatal(err)
		}
		plain, err = io.ReadAll(answer.Body)
		if _ = answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if asked == "false" {
			defer func(whole []byte) { plain = whole }(plain)
		}
	}
	for line := range bytes.Lines(plain) {
		if data, is := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: ")); is {
			events = append(events, data)
		}
	}
	return plain, events
}

func stepsOf() (all []string) {
	for line := range strings.Lines(steps) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// The script writes both forms by itself, so each is held against the other one's meaning.
func TestAGatheredStreamIsThePlainAnswer(t *testing.T) {
	t.Parallel()
	for _, d := range dialects {
		for _, step := range stepsOf() {
			plain, events := answersOf(t, d, step)
			gathered := live.NewAnswer(d)
			for _, data := range events {
				gathered.Add(data)
			}
			if diff := cmp.Diff(decoded(t, plain), decoded(t, gathered.Body())); diff != "" {
				t.Errorf("%s %s (-plain +gathered)\n%s", d, step, diff)
			}
		}
	}
}

func decoded(t testing.TB, raw []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}

func TestWordsAreWhatTheAnswerSays(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"text ": "Grüße aus dem Hafen, der 1715 niederbrannte. 👋 And \"more\" of it.", "arguments final_answer": `{"text":"It \"burnt\" down\nin 1715","sure":true}`,
	}
	for _, d := range dialects {
		got := map[string]string{}
		for _, step := range stepsOf()[:3] {
			words := live.NewWords(d)
			_, events := answersOf(t, d, step)
			for _, data := range events {
				for _, p := range words.Next(data) {
					got[string(p.Kind)+" "+p.Tool] += p.Text
				}
			}
			if strings.Contains(step, "👋") && got["text "] != want["text "] {
				t.Errorf("%s: %q", d, got)
			}
		}
		if diff := cmp.Diff(decoded(t, []byte(want["arguments final_answer"])), decoded(t, []byte(got["arguments final_answer"]))); diff != "" {
			t.Errorf("%s\n%s", d, diff)
		}
		if d == catalog.Chat && got["thought "] != "Two and two are added first." {
			t.Errorf("%q", got)
		}
	}
}

// Shapes that providers have and the script hasn't.
func TestForeignChunksAreGathered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dialect catalog.Dialect
		events  string
		want    string
	}{
		{catalog.Chat, `{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"a"}},{"index":1,"delta":{"content":"x"}}]}
{"id":"1","choices":[{"index":1,"delta":{"content":"y"},"finish_reason":"stop"}]}
{"choices":[{"index":0,"delta":{"content":"b","annotations":[{"type":"url"}]},"logprobs":{"content":[{"token":"b","bytes":[98]}]},"finish_reason":null}]}
{"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":null}
{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}
[DONE]`, `{"object":"chat.completion","id":"1","choices":[
{"index":0,"message":{"role":"assistant","content":"ab","annotations":[{"type":"url"}]},"logprobs":{"content":[{"token":"b","bytes":[98]}]},"finish_reason":"length"},
{"index":1,"message":{"role":"assistant","content":"xy"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`},
		{
			catalog.Chat, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]}}]}
{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}}]}
{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":"tool_calls"}]}`,
			`{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}]}`,
		},
		{
			catalog.Messages, `{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":4,"output_tokens":1}}}
{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so"}}
{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s1"}}
{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}
{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\": "}}
{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}`,
			`{"id":"m","content":[{"type":"thinking","thinking":"so","signature":"s1"},{"type":"tool_use","id":"t","name":"f","input":{}}],"usage":{"input_tokens":4,"output_tokens":9},"stop_reason":"max_tokens"}`,
		},
	} {
		gathered := live.NewAnswer(c.dialect)
		for data := range strings.Lines(c.events) {
			gathered.Add([]byte(data))
		}
		if diff := cmp.Diff(decoded(t, []byte(c.want)), decoded(t, gathered.Body())); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestFieldsOfArgumentsComeAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	const whole = `{"n": 1, "text": "Grüße \"du\"\n\ud83d\ude00 \u00fc \ud83dx", "list": ["no", {"text": "no"}], "o": {"text": "no"}, "more": "", "last": "é"}`
	var want map[string]any
	if err := json.Unmarshal([]byte(whole), &want); err != nil {
		t.Fatal(err)
	}
	for size := 1; size < len(whole); size++ {
		var f live.Fields
		got := map[string]string{}
		for i := 0; i < len(whole); i += size {
			for _, field := range f.Next(whole[i:min(i+size, len(whole))]) {
				got[field.Name] += field.Text
			}
		}
		if got["text"] != want["text"] || got["last"] != want["last"] || len(got) != 2 {
			t.Fatalf("by %d bytes: %q", size, got)
		}
	}
}

// Whatever a provider sends, its answer takes no more than what it is said to take, and a few times the event itself.
func FuzzStream(f *testing.F) {
	for _, d := range dialects {
		for _, step := range stepsOf() {
			_, events := answersOf(f, d, step)
			f.Add(string(d), bytes.Join(events, []byte("\n")))
		}
	}
	f.Add("chat", []byte(`{"choices":[{"index":9e99,"delta":{"tool_calls":[7,null,{"index":-1,"function":[]}],"content":[{}]}}]}`))
	fuzzbound.Run(f, func(t *testing.T, dialect string, stream []byte) {
		gathered, words := live.NewAnswer(catalog.Dialect(dialect)), live.NewWords(catalog.Dialect(dialect))
		for data := range bytes.Lines(stream) {
			gathered.Add(data)
			for _, p := range words.Next(data) {
				var fields live.Fields
				fields.Next(p.Text)
			}
		}
		if body := gathered.Body(); body != nil && !json.Valid(body) {
			t.Fatalf("no JSON: %q", body)
		}
	})
}
