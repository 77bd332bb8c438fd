package script

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

func read(t *testing.T, text string) *Script {
	t.Helper()
	s, findings := Read("script.yaml", []byte(text))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return s
}

func answer(t *testing.T, s *Script, run, dialect, body string) (status int, header http.Header, text string) {
	t.Helper()
	a, err := s.Answer(t.Context(), run, dialect, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	raw, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, a.Header, string(raw)
}

func TestEachRunHasTheAnswersFromTheFirstOn(t *testing.T) {
	s := read(t, `[{"text": "one"}, {"status": 429, "message": "slow down", "retry_after": "1500ms"}]`)
	for _, run := range []string{"a", "b"} {
		if status, _, text := answer(t, s, run, "chat", `{}`); status != 200 || !strings.Contains(text, `"content":"one"`) {
			t.Errorf("%d %s", status, text)
		}
		if status, h, text := answer(t, s, run, "messages", `{}`); status != 429 || h.Get("Retry-After") != "2" || !strings.HasPrefix(text, `{"error":{`) || !strings.Contains(text, `"type":"error"`) {
			t.Errorf("%d %v %s", status, h, text)
		}
		if status, _, text := answer(t, s, run, "chat", `{}`); status != 400 || !strings.Contains(text, "no answer left") {
			t.Errorf("%d %s", status, text)
		}
	}
	s = read(t, "answers: [{text: one}, {text: two}]\nrepeat: true")
	for _, want := range []string{"one", "two", "one"} {
		if _, _, text := answer(t, s, "a", "chat", `{}`); !strings.Contains(text, want) {
			t.Error(text)
		}
	}
	s = read(t, "answers: [{text: one}, {text: two}]\nshared: true")
	for i, want := range []string{"one", "two", "no answer left"} {
		if _, _, text := answer(t, s, string(rune('a'+i)), "chat", `{}`); !strings.Contains(text, want) {
			t.Error(text)
		}
	}
}

func TestAStreamHoldsWhatTheWholeAnswerDoes(t *testing.T) {
	const long = "Grüße an alle, die diesen Satz lesen, von weit her 👋"
	for dialect, path := range map[string][]string{"chat": {"content"}, "messages": {"text"}, "responses": {"delta"}} {
		s := read(t, `[{text: "`+long+`", tool_calls: [{name: ocr, arguments: {page: 1}}, {name: broken, arguments: "{"}]}]`)
		_, h, text := answer(t, s, "a", dialect, `{"stream":true,"model":"x","stream_options":{"include_usage":true}}`)
		var said strings.Builder
		for line := range strings.SplitSeq(text, "\n") {
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok || data == "[DONE]" {
				continue
			}
			var v any
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				t.Fatalf("%s: %s", err, data)
			}
			said.WriteString(textIn(v, path[0]))
		}
		if h.Get("Content-Type") != "text/event-stream" || !strings.Contains(said.String(), long) || !strings.Contains(text, "page") || !strings.Contains(text, "usage") {
			t.Errorf("%s: %s\n%s", dialect, said.String(), text)
		}
	}
}

func TestAModelThatReasonsWritesItInEachChunk(t *testing.T) {
	s := read(t, `{repeat: true, answers: [{reasoning: "Long ago, and in the dark of winter.", text: "In 1715."}]}`)
	_, _, whole := answer(t, s, "a", "chat", `{}`)
	if !strings.Contains(whole, `"content":"In 1715.","reasoning_content":"Long ago, and in the dark of winter."`) {
		t.Error(whole)
	}
	_, _, text := answer(t, s, "a", "chat", `{"stream":true}`)
	var chunks int
	var said, thought strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		data, ok := strings.CutPrefix(line, `data: {"choices"`)
		if !ok {
			continue
		}
		var v any
		if err := json.Unmarshal([]byte(`{"choices"`+data), &v); err != nil {
			t.Fatalf("%s: %s", err, data)
		}
		chunks++
		said.WriteString(textIn(v, "content"))
		thought.WriteString(textIn(v, "reasoning_content"))
	}
	if chunks == 0 || strings.Count(text, `"reasoning_content"`) != chunks || said.String() != "In 1715." || thought.String() != "Long ago, and in the dark of winter." {
		t.Errorf("%d chunks, %q, %q:\n%s", chunks, &said, &thought, text)
	}
}

// textIn gathers the texts of a name, wherever it stands in an event that adds some.
func textIn(v any, name string) string {
	switch v := v.(type) {
	case map[string]any:
		if kind, ok := v["type"].(string); ok && (strings.HasSuffix(kind, ".done") || strings.HasSuffix(kind, "completed")) {
			return ""
		}
		if s, ok := v[name].(string); ok {
			return s
		}
		var all string
		for _, each := range v {
			all += textIn(each, name)
		}
		return all
	case []any:
		var all string
		for _, each := range v {
			all += textIn(each, name)
		}
		return all
	}
	return ""
}

func TestEmbeddingsAreThoseOfTheText(t *testing.T) {
	s := read(t, "[{text: unused}]")
	_, _, text := answer(t, s, "a", "embeddings", `{"model":"x","input":["a","b","a"]}`)
	var got struct {
		Data []struct{ Embedding []float64 }
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Data) != 3 || len(got.Data[0].Embedding) != dimensions {
		t.Fatal(text, err)
	}
	if got.Data[0].Embedding[0] != got.Data[2].Embedding[0] || got.Data[0].Embedding[0] == got.Data[1].Embedding[0] {
		t.Error(text)
	}
}

func TestAPauseEndsWithItsRun(t *testing.T) {
	s := read(t, "[{text: a, pause: 1h}]")
	why := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, why)
	defer cancel()
	answer, err := s.Answer(ctx, "a", "chat", []byte(`{}`))
	if !errors.Is(err, why) {
		answer.Body.Close()
		t.Error(err)
	}
}

func TestWhatIsWrongInAScriptIsFound(t *testing.T) {
	for text, want := range map[string]string{
		"{": "it isn't YAML", "": "there are no answers", "[]": "there are no answers", "answers: 1": "there are no answers", "- 1": "an answer isn't a map",
		"- {}": "nothing to say", "- {texts: a}": "nothing of this name", "- {status: 99}": "isn't a status", "- {text: a, pause: 1}": "isn't a duration",
		"- {text: a, pause: 2h}": "isn't a duration", "- {tool_calls: a}": "isn't a list", "- {tool_calls: [{}]}": "a call has no name",
	} {
		_, findings := Read("f", []byte(text))
		if len(findings) == 0 || !strings.Contains(findings[0].String()+findings[len(findings)-1].String(), want) || findings[0].Hint == "" {
			t.Errorf("%q: %v, want %s", text, findings, want)
		}
	}
}

func FuzzScript(f *testing.F) {
	f.Add([]byte("[{text: a, tool_calls: [{name: b, arguments: {c: 1.5}}]}, {status: 429}]"), []byte(`{"stream":true}`))
	fuzzbound.Run(f, func(t *testing.T, text, body []byte) {
		s, findings := Read("f", text)
		if len(findings) > 0 {
			return
		}
		for i := range s.steps {
			s.steps[i].pause = 0
		}
		for _, dialect := range []string{"chat", "messages", "responses", "embeddings"} {
			for range len(s.steps) + 1 {
				a, err := s.Answer(t.Context(), dialect, dialect, body)
				if err != nil || a.StatusCode < 200 {
					t.Fatal(err, a)
				}
				a.Body.Close()
			}
		}
	})
}
