package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
)

// An answer of the status 200 that is none is a failure: the next one is asked, and nothing is charged but what
// the provider counted.
func TestAnAnswerThatIsNoneIsAskedOfTheNext(t *testing.T) {
	t.Parallel()
	const usage = `"usage":{"prompt_tokens":7,"completion_tokens":3,"input_tokens":7,"output_tokens":3}`
	for name, c := range map[string]struct {
		path, body string
		spent      int64 // beside the 10 tokens of the next one
	}{
		"an error":                {"/chat/completions", `{"error":{"message":"upstream failed","code":502}}`, 0},
		"an error and a usage":    {"/chat/completions", `{"error":{"message":"x"},"choices":[{}],` + usage + `}`, 10},
		"no choices":              {"/chat/completions", `{"id":"1"}`, 0},
		"choices of null":         {"/chat/completions", `{"choices":null}`, 0},
		"empty choices, counted":  {"/chat/completions", `{"choices":[],` + usage + `}`, 10},
		"an error as text":        {"/chat/completions", `{"error":"no"}`, 0},
		"an error of messages":    {"/messages", `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, 0},
		"no content":              {"/messages", `{"content":null}`, 0},
		"an error of a response":  {"/responses", `{"status":"failed","error":{"code":"server_error"},"output":[]}`, 0},
		"no data of an embedding": {"/embeddings", `{"data":[]}`, 0},
		"an error in a choice":    {"/chat/completions", `{"choices":[{"error":{"code":502,"message":"x"},"finish_reason":"error","message":{"content":""}}]}`, 0},
		"an object that is one":   {"/chat/completions", `{"object":"error","message":"x","code":500,"choices":[{}]}`, 0},
		"a choice of null":        {"/chat/completions", `{"choices":[null]}`, 0},
		"an error without a type": {"/messages", `{"error":{"message":"x"},"content":[]}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			provider := newDouble(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				answering(w, []string{c.body, plainAnswer}[min(n, 1)])
			})
			b := newBench(t, provider.URL)
			b.catalog.Providers["q"] = b.catalog.Providers["p"]
			m := b.catalog.Models["m"]
			m.Use = append(m.Use, catalog.Use{Provider: "q", Model: "other"})
			b.catalog.Models["m"] = m
			a := b.serve().ask("POST", c.path, bodies[c.path])
			told := b.told.last(t, 1)
			want := c.spent + 10
			if c.path == "/embeddings" {
				want = 7
			}
			if a.status != 200 || a.body != plainAnswer || told.Spent.Amount.Tokens != want || told.Spent.Estimated ||
				told.Call.Provider != "q" {
				t.Errorf("%d %s, spent %+v", a.status, a.body, told.Spent)
			}
		})
	}
}

func TestAnEmptyErrorIsNone(t *testing.T) {
	t.Parallel()
	for _, empty := range []string{`null`, `""`, `{}`, `[]`, `false`, `0`} {
		body := `{"error":` + empty + `,"choices":[{"message":{"content":"x"},"error":` + empty + `}]}`
		provider := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) { answering(w, body) })
		if a := newBench(t, provider.URL).serve().ask("POST", "/chat/completions", bodies["/chat/completions"]); a.status != 200 || a.body != body {
			t.Errorf("%s: %d %s", empty, a.status, a.body)
		}
	}
}

func TestAnErrorInAnEventIsAFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d     catalog.Dialect
		event string
		want  what
	}{
		{catalog.Chat, `{"error":{"message":"x"}}`, failed},
		{catalog.Chat, `{"error":"","choices":[{"delta":{"content":"a"}}]}`, content},
		{catalog.Chat, `{"object":"error","message":"x"}`, failed},
		{catalog.Chat, `{"choices":[{"delta":{},"error":{"message":"x"},"finish_reason":"error"}]}`, failed},
		{catalog.Messages, `{"error":{"message":"x"}}`, failed},
		{catalog.Responses, `{"error":{"message":"x"}}`, failed},
		{catalog.Responses, `{"type":"response.output_text.delta","delta":"{\"error\":1}"}`, content},
	} {
		m := meter{dialect: c.d}
		if got := m.event([]byte("data: " + c.event + "\n\n")); got != c.want {
			t.Errorf("%s: %s is %d", c.d, c.event, got)
		}
	}
}

func TestCountsAreReadAsServersWriteThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d     catalog.Dialect
		usage string
		want  Usage
		known bool
	}{
		"with a point":        {catalog.Chat, `{"prompt_tokens":10.0,"completion_tokens":3}`, Usage{Input: 10, Output: 3}, true},
		"as texts":            {catalog.Chat, `{"prompt_tokens":"10","completion_tokens":"3"}`, Usage{Input: 10, Output: 3}, true},
		"an odd detail":       {catalog.Chat, `{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":"many"},"completion_tokens_details":{"reasoning_tokens":2}}`, Usage{Input: 10, Output: 3, Reasoning: 2}, true},
		"more cached than is": {catalog.Responses, `{"input_tokens":10,"output_tokens":3,"input_tokens_details":{"cached_tokens":11}}`, Usage{Input: 10, Output: 3}, true},
		"DeepSeek's":          {catalog.Chat, `{"prompt_tokens":10,"completion_tokens":3,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":2}`, Usage{Input: 10, Cached: 8, Output: 3}, true},
		"half a token":        {catalog.Chat, `{"prompt_tokens":10.5,"completion_tokens":3}`, Usage{Output: 3}, false},
		"less than none":      {catalog.Chat, `{"prompt_tokens":10,"completion_tokens":-1}`, Usage{Input: 10}, false},
		"no input":            {catalog.Messages, `{"input_tokens":"x","output_tokens":3}`, Usage{Output: 3}, false},
	} {
		m := meter{dialect: c.d}
		m.take([]byte(c.usage), true)
		if m.usage != c.want || m.known != c.known {
			t.Errorf("%s: %+v, known %v", name, m.usage, m.known)
		}
	}
	m := meter{dialect: catalog.Chat}
	m.event([]byte(`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":3}}}` + "\n\n"))
	m.event([]byte(`data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}` + "\n\n"))
	if m.usage != (Usage{Input: 7, Output: 3}) || !m.known || !m.ended {
		t.Errorf("%+v", m)
	}
}

func TestTheWordsOfAProviderReachTheCallerAndTheRecord(t *testing.T) {
	t.Parallel()
	for status, c := range map[int]struct{ said, want string }{
		429: {`{"error":{"message":"Rate limit reached for\n gpt, use sk-abcdefghij"}}`, "Rate limit reached for  gpt, use [key]"},
		500: {`{"message":"` + strings.Repeat("long ", 1000) + `"}`, "long lo"},
		503: {`{"error":"` + canary + `"}`, ""},
	} {
		provider := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, c.said)
		})
		b := newBench(t, provider.URL).serve()
		a := b.ask("POST", "/chat/completions", bodies["/chat/completions"])
		kept := string(b.told.last(t, 1).Answer)
		if !strings.Contains(a.body, c.want) || !strings.Contains(kept, c.want) || len(a.body) > 1500 ||
			strings.Contains(a.body+kept, canary) {
			t.Errorf("%d: %s, kept %s", status, a.body, kept)
		}
	}
}

// What has begun without a word is begun anew.
func TestAStreamThatEndsBeforeItsFirstWordIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/chat/completions", "/responses", "/messages"} {
		ok := events[path]
		provider := newDouble(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			stream(w, [][]string{ok[:1], ok}[min(n, 1)]...)
		})
		b := newBench(t, provider.URL).serve()
		if a := b.ask("POST", path, streaming(bodies[path])); a.status != 200 || !strings.HasPrefix(a.body, ok[0]+ok[1]) ||
			len(provider.requests()) != 2 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

// A response that fails before its first word is asked of the next, and charged by what it says that it took; one that
// fails later isn't an answer that anybody keeps.
func TestAResponseThatFails(t *testing.T) {
	t.Parallel()
	ok := events["/responses"]
	ends := func(code, usage string) string {
		return `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"` + code + `","message":"no luck"},"usage":` + usage + `}}` + "\n\n"
	}
	called := `data: {"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}` + "\n\n"
	failed := ends("server_error", "null")
	for name, c := range map[string]struct {
		first  string
		status int
		want   string // in what comes out
		asked  int
		spent  int64 // in all, 10 of them for a good answer; -1: the worst
	}{
		"first":              {ok[0] + failed, 200, strings.Join(ok, ""), 2, 10},
		"first, with counts": {ok[0] + ends("server_error", `{"input_tokens":5,"output_tokens":0}`), 200, strings.Join(ok, ""), 2, 15},
		"first, for good":    {ok[0] + ends("invalid_request_error", "null"), 400, `{"error":{"code":"invalid_request_error","message":"no luck"}}`, 1, 0},
		"after a word":       {ok[0] + ok[1] + failed, 200, ok[0] + ok[1] + failed, 1, -1},
		"after a call":       {ok[0] + called + failed, 200, ok[0] + called + failed, 1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := newDouble(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				stream(w, []string{c.first, strings.Join(ok, "")}[min(n, 1)])
			})
			b := newBench(t, provider.URL)
			kept := newBooks(ledger.Amount{})
			b.session.Ledger = kept
			body := streaming(bodies["/responses"])
			a := b.serve().ask("POST", "/responses", body, "Idempotency-Key: one")
			told := b.told.last(t, 1)
			if spent, _ := kept.spent(); spent.Tokens != c.spent && c.spent >= 0 || c.spent < 0 && !told.Spent.Estimated {
				t.Errorf("spent %+v, want %d", spent, c.spent)
			}
			if a.status != c.status || a.body != c.want || len(provider.requests()) != c.asked {
				t.Errorf("%d %s after %d requests", a.status, a.body, len(provider.requests()))
			}
			again := b.ask("POST", "/responses", body, "Idempotency-Key: one")
			if failed := c.want != strings.Join(ok, ""); failed == (len(provider.requests()) == c.asked) || again.status != 200 {
				t.Errorf("once more it is asked %d times, and answers %d", len(provider.requests()), again.status)
			}
		})
	}
}
