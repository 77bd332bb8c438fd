package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/handoff/gateway/script"
)

var pathsOf = map[catalog.Dialect]string{catalog.Chat: "/chat/completions", catalog.Responses: "/responses", catalog.Messages: "/messages"}

// foreign are the ways to ask a provider that speaks one dialect.
func foreign(t *testing.T, test func(t *testing.T, asker, provider catalog.Dialect)) {
	t.Parallel()
	for asker := range pathsOf {
		for provider := range pathsOf {
			if asker != provider {
				t.Run(string(asker)+" to "+string(provider), func(t *testing.T) {
					t.Parallel()
					test(t, asker, provider)
				})
			}
		}
	}
}

// acted is a provider that answers from a script, in one dialect.
func acted(t *testing.T, in catalog.Dialect, s *script.Script) *double {
	var d *double
	d = newDouble(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != pathsOf[in] {
			http.NotFound(w, r)
			return
		}
		answer, err := s.Answer(r.Context(), "run", string(in), []byte(d.requests()[n]))
		if err != nil {
			return
		}
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	})
	return d
}

// foreignBench is a bench whose provider speaks one dialect.
func foreignBench(t *testing.T, address string, d catalog.Dialect) (*bench, *books) {
	b, kept := newBench(t, address), newBooks(ledger.Amount{})
	b.speak(d, catalog.Embeddings)
	b.session.Ledger = kept
	return b, kept
}

// ends are the last words of a stream.
var ends = map[catalog.Dialect]string{catalog.Chat: "data: [DONE]\n\n", catalog.Responses: `"type":"response.completed"}` + "\n\n", catalog.Messages: "data: {\"type\":\"message_stop\"}\n\n"}

func TestAProviderWithOneDialectIsAskedInTheOthers(t *testing.T) {
	foreign(t, func(t *testing.T, asker, provider catalog.Dialect) {
		for _, streams := range []bool{false, true} {
			s := scriptOf(t, `[{text: Hello there, tool_calls: [{name: ocr, arguments: {page: 1}}], usage: {input: 7, output: 3}}]`)
			d := acted(t, provider, s)
			b, kept := foreignBench(t, d.URL, provider)
			b.serve()
			body := bodies[pathsOf[asker]]
			if streams {
				body = streaming(body)
			}
			a := b.ask("POST", pathsOf[asker], body, "Anthropic-Beta: x", "Openai-Beta: y")
			if a.status != 200 || !strings.Contains(a.body, "Hello there") || !strings.Contains(a.body, `"ocr"`) || !strings.Contains(a.body, "page") {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if streams && (!strings.HasSuffix(a.body, ends[asker]) || strings.Contains(a.body, "prompt_tokens")) {
				t.Errorf("it ends with: %s", a.body)
			}
			spent, reserved := kept.spent()
			if spent.Tokens != 10 || reserved.Tokens != 0 || spent.Cost != 7*1000+3*3000 {
				t.Errorf("spent %+v, reserved %+v", spent, reserved)
			}
			e := b.told.last(t, 1)
			if string(e.Request) != body || string(e.Answer) != a.body || e.Call.Dialect != asker || e.Spent.Estimated || e.About.ID != "script" || len(e.About.Reasons) == 0 {
				t.Errorf("told of %+v", e)
			}
			checkSent(t, d, provider, streams)
		}
	})
}

// checkSent: what goes out keeps the rules of the provider's dialect.
func checkSent(t *testing.T, d *double, provider catalog.Dialect, streams bool) {
	t.Helper()
	sent, h := d.requests()[0], d.header[0]
	want := map[catalog.Dialect][]string{
		catalog.Chat: {`"max_tokens":`}, catalog.Responses: {`"store":false`, `"max_output_tokens":`}, catalog.Messages: {`"max_tokens":`},
	}[provider]
	if streams && provider == catalog.Chat {
		want = append(want, `"include_usage":true`)
	}
	for _, w := range append(want, `"model":"up"`) {
		if !strings.Contains(sent, w) {
			t.Errorf("the provider got no %s: %s", w, sent)
		}
	}
	if h.Get("Anthropic-Beta")+h.Get("Openai-Beta") != "" || (h.Get("X-Api-Key") == canary) != (provider == catalog.Messages) || (h.Get("Anthropic-Version") != "") != (provider == catalog.Messages) {
		t.Errorf("the provider got %v", h)
	}
}

func TestTheCountsOfATranslatedStreamComeWhereTheyAreAsked(t *testing.T) {
	t.Parallel()
	d := acted(t, catalog.Messages, scriptOf(t, `[{text: Hi, usage: {input: 7, output: 3}}]`))
	b, _ := foreignBench(t, d.URL, catalog.Messages)
	a := b.serve().ask("POST", "/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hi"}]}`)
	if !strings.Contains(a.body, `"completion_tokens":3`) || !strings.Contains(a.body, `"prompt_tokens":7`) {
		t.Error(a.body)
	}
}

// rounds are a conversation with a tool, up to its result.
var rounds = map[catalog.Dialect]string{
	catalog.Chat: `{"model":"m","messages":[{"role":"system","content":"Read"},{"role":"user","content":"Go"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"ocr","arguments":"{\"page\":1}"}}]},` +
		`{"role":"tool","tool_call_id":"c1","content":"It burnt"}],"tools":[{"type":"function","function":{"name":"ocr","parameters":{"type":"object"}}}],"tool_choice":"auto"}`,
	catalog.Responses: `{"model":"m","instructions":"Read","input":[{"role":"user","content":"Go"},{"type":"function_call","call_id":"c1","name":"ocr","arguments":"{\"page\":1}"},` +
		`{"type":"function_call_output","call_id":"c1","output":"It burnt"}],"tools":[{"type":"function","name":"ocr","parameters":{"type":"object"}}]}`,
	catalog.Messages: `{"model":"m","max_tokens":20,"system":"Read","messages":[{"role":"user","content":"Go"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"ocr","input":{"page":1}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"It burnt"}]}],"tools":[{"name":"ocr","input_schema":{"type":"object"}}]}`,
}

func TestAToolsResultReachesAForeignProvider(t *testing.T) {
	foreign(t, func(t *testing.T, asker, provider catalog.Dialect) {
		d := acted(t, provider, scriptOf(t, `[{text: In 1715}]`))
		b, _ := foreignBench(t, d.URL, provider)
		a := b.serve().ask("POST", pathsOf[asker], rounds[asker])
		if a.status != 200 || !strings.Contains(a.body, "In 1715") {
			t.Fatalf("%d %s", a.status, a.body)
		}
		for _, word := range []string{`"It burnt"`, `"c1"`, `"ocr"`, "page", `"Read"`} {
			if sent := d.requests()[0]; !strings.Contains(sent, word) {
				t.Errorf("the provider got no %s: %s", word, sent)
			}
		}
	})
}

// Errors are in the asker's words, whoever says them, and those of a key say nothing of it.
func TestErrorsOfAForeignProvider(t *testing.T) {
	problem := `{"type":"error","error":{"type":"invalid_request_error","message":"it is too long"}}`
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		status int
		rule   string
		words  string
	}{
		"a 400":      {func(w http.ResponseWriter) { w.WriteHeader(400); _, _ = io.WriteString(w, problem) }, 400, RuleProvider, "it is too long"},
		"a 404":      {func(w http.ResponseWriter) { w.WriteHeader(404) }, 404, RuleProvider, "refuses"},
		"a 500":      {func(w http.ResponseWriter) { w.WriteHeader(500) }, 502, RuleProvider, "500"},
		"a bad key":  {func(w http.ResponseWriter) { w.WriteHeader(401) }, 502, RuleKey, "key"},
		"too often":  {func(w http.ResponseWriter) { w.WriteHeader(429) }, 429, RuleRate, "for now"},
		"within 200": {func(w http.ResponseWriter) { answering(w, problem) }, 400, RuleProvider, "it is too long"},
		"an odd part": {func(w http.ResponseWriter) {
			answering(w, `{"content":[{"type":"server_tool_use"}],"choices":[{"message":{"audio":{}}}],"output":[{"type":"mcp_call"}],"usage":{"input_tokens":7,"output_tokens":3,"prompt_tokens":7,"completion_tokens":3}}`)
		}, 502, RuleProvider, "can't be said"},
		"an odd event": {func(w http.ResponseWriter) {
			stream(w, `data: {"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use"}}`+"\n\n")
		}, 502, RuleProvider, "can't be said"},
	} {
		t.Run(name, func(t *testing.T) {
			foreign(t, func(t *testing.T, asker, provider catalog.Dialect) {
				if name == "an odd event" && provider != catalog.Messages {
					t.Skip("it is of messages")
				}
				d := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) { c.answer(w) })
				b, _ := foreignBench(t, d.URL, provider)
				body := bodies[pathsOf[asker]]
				if name == "an odd event" {
					body = strings.Replace(body, "{", `{"stream":true,`, 1)
				}
				a := b.serve().ask("POST", pathsOf[asker], body)
				if p := a.problem(t, c.status, c.rule); (p.Type == "error") != (asker == catalog.Messages) || !strings.Contains(p.Error.Message, c.words) {
					t.Errorf("%d %s", a.status, a.body)
				}
				if e := b.told.last(t, 1); string(e.Answer) != a.body {
					t.Errorf("told of %s", e.Answer)
				}
			})
		})
	}
}

func TestAForeignStreamThatBreaksOff(t *testing.T) {
	foreign(t, func(t *testing.T, asker, provider catalog.Dialect) {
		path := pathsOf[provider]
		ok := events[path]
		for name, c := range map[string]struct {
			parts []string
			spent int64 // 0: in full
			whole bool
		}{
			"cut":             {append(slices.Clone(ok[:2]), "data: "), 0, false},
			"an error at end": {append(slices.Clone(ok[:2]), failures[path]), 0, false},
			"no JSON":         {append(slices.Clone(ok[:2]), "data: {\"a\"\n\n"), 0, false},
			"whole":           {ok, 10, true},
			"no last event":   {ok[:max(3, len(ok)-1)], 10, true},
		} {
			d := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				stream(w, c.parts...)
				if !c.whole {
					cutConnection()
				}
			})
			b, kept := foreignBench(t, d.URL, provider)
			if name == "no last event" && provider == catalog.Chat { // its counts end it
				c.parts = ok[:3]
			}
			a, _ := tryAt(t, b.serve().server.URL, "POST", pathsOf[asker], streaming(bodies[pathsOf[asker]]))
			if a.status != 200 || !strings.Contains(a.body, "Grüße 👋") || strings.Contains(a.body, ends[asker]) != c.whole || strings.Contains(a.body, `"rule":"provider"`) == c.whole {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
			if name == "no JSON" && !strings.Contains(a.body, "isn't JSON") {
				t.Errorf("it doesn't say why: %s", a.body)
			}
			b.told.last(t, 1)
			if spent, reserved := kept.spent(); spent.Tokens == 0 || (spent.Tokens == 10) != (c.spent == 10) || reserved.Tokens != 0 {
				t.Errorf("%s: spent %+v, reserved %+v", name, spent, reserved)
			}
		}
	})
}

func TestWhatAForeignProviderCanNotBeAskedIsRefusedBeforeAnythingGoesOut(t *testing.T) {
	t.Parallel()
	d := acted(t, catalog.Messages, scriptOf(t, `[{text: Hi}]`))
	b, kept := foreignBench(t, d.URL, catalog.Messages)
	a := b.serve().ask("POST", "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Hi"}],"seed":7}`)
	p := a.problem(t, 400, RuleDialect)
	if !strings.Contains(p.Error.Message, "/seed") || !strings.Contains(p.Error.Hint, "ask in messages") || len(d.requests()) != 0 {
		t.Errorf("%s %v", a.body, d.requests())
	}
	if spent, reserved := kept.spent(); spent.Tokens+reserved.Tokens != 0 {
		t.Errorf("%+v %+v", spent, reserved)
	}
}

// Who speaks the dialect is asked first, then who doesn't, in the order of use; who can't be asked is left out.
func TestProvidersOfTheDialectComeFirst(t *testing.T) {
	t.Parallel()
	var asked []string
	at := func(name string, status int) string {
		return newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			asked = append(asked, name)
			w.WriteHeader(status)
		}).URL
	}
	b := newBench(t, "")
	provider := func(url string, d catalog.Dialect) catalog.Provider {
		return catalog.Provider{Kind: catalog.Compatible, BaseURL: url, Dialects: []catalog.Dialect{d}}
	}
	b.catalog.Providers = map[string]catalog.Provider{
		"a": provider(at("a", 402), catalog.Messages), "b": provider(at("b", 402), catalog.Responses),
		"c": provider(at("c", 402), catalog.Chat), "d": provider(at("d", 402), catalog.Chat),
	}
	m := b.catalog.Models["m"]
	m.Use = []catalog.Use{{Provider: "a"}, {Provider: "b"}, {Provider: "c"}, {Provider: "d"}}
	b.catalog.Models["m"] = m
	b.serve()
	for body, want := range map[string]string{
		`{"model":"m","messages":[{"role":"user","content":"Hi"}]}`:                   "[c d a b]",
		`{"model":"m","messages":[{"role":"user","content":"Hi"}],"verbosity":"low"}`: "[c d b]",
		`{"model":"m","messages":[{"role":"user","content":"Hi"}],"seed":7}`:          "[c d]",
	} {
		asked = nil
		b.ask("POST", "/chat/completions", body)
		if fmt.Sprint(asked) != want {
			t.Errorf("%s: asked %v, not %s", body, asked, want)
		}
	}
}

// A cassette, a key and a cache have what was asked and answered, and no other form of it.
func TestTheSameKeyHasTheSameTranslatedAnswer(t *testing.T) {
	t.Parallel()
	d := acted(t, catalog.Chat, scriptOf(t, `[{text: One}, {text: Two}]`))
	b, _ := foreignBench(t, d.URL, catalog.Chat)
	b.serve()
	for _, body := range []string{bodies["/messages"], streaming(bodies["/messages"])} {
		first := b.ask("POST", "/messages", body, "Idempotency-Key: k"+body)
		again := b.ask("POST", "/messages", body, "Idempotency-Key: k"+body)
		if first.body != again.body || first.status != 200 || !strings.Contains(first.body, `"type":"message`) {
			t.Errorf("%s\n%s", first.body, again.body)
		}
	}
	if len(d.requests()) != 2 {
		t.Error(d.requests())
	}
}

func TestModelsAreListedWithTheDialectsOfTranslation(t *testing.T) {
	t.Parallel()
	b := newBench(t, "http://nobody.invalid")
	b.speak(catalog.Messages)
	a := b.serve().ask("GET", "/v1/models/m", "")
	var told struct {
		AOD struct{ Dialects, Translated []string }
	}
	must(t, json.Unmarshal([]byte(a.body), &told))
	if fmt.Sprint(told.AOD) != "{[messages] [chat responses]}" {
		t.Error(a.body)
	}
	if m := b.gw.Models()[0]; fmt.Sprint(m.Dialects, m.Translated) != "[messages] [chat responses]" {
		t.Errorf("%+v", m)
	}
	b = newBench(t, "http://nobody.invalid")
	b.speak(catalog.Embeddings)
	if a := b.serve().ask("POST", "/v1/messages", bodies["/messages"]); a.problem(t, 400, RuleDialect).Error.Hint != "ask it by embeddings" {
		t.Error(a.body)
	}
}

// What goes out may be longer than what came: it is what a budget has to have room for.
func TestABudgetHasRoomForWhatReallyGoesOut(t *testing.T) {
	t.Parallel()
	body := `{"model":"m","max_tokens":5,"messages":[` + strings.Repeat(`{"role":"user","content":"Hi"},`, 300) + `{"role":"user","content":"Hi"}]}`
	limit := ledger.Amount{Tokens: int64(len(body)) + added + 5}
	for provider, status := range map[catalog.Dialect]int{catalog.Chat: 200, catalog.Responses: 402} {
		d := acted(t, provider, scriptOf(t, `[{text: Hi}]`))
		b, _ := foreignBench(t, d.URL, provider)
		b.session.Ledger = newBooks(limit)
		if a := b.serve().ask("POST", "/chat/completions", body); a.status != status {
			t.Errorf("%s: %d %s", provider, a.status, a.body)
		}
	}
}

func TestNoTranslatedBodyPassesABudget(t *testing.T) {
	t.Parallel()
	statuses := map[string]int{}
	for n := range 12 {
		f := &forger{rand.New(rand.NewPCG(7, uint64(n))), map[string]int{}}
		w := windows[n%len(windows)]
		v := &vendor{kind: w.kind, window: w.window}
		b := newBench(t, "http://vendor.test/v1")
		p, m := b.catalog.Providers["p"], b.catalog.Models["m"]
		p.Kind, p.AnyField, m.MaxOutput = w.kind, false, 400
		p.Dialects = []catalog.Dialect{[]catalog.Dialect{catalog.Chat, catalog.Responses, catalog.Messages}[n%3], catalog.Embeddings}
		m.Price = &catalog.Price{Input: 1e9, Cached: 1e9, CacheWrite: 1e9, Output: 3e9}
		if w.written {
			m.Context = w.window
		}
		b.catalog.Providers["p"], b.catalog.Models["m"], b.opts.Transport = p, m, v
		b.serve()
		askAll(t, b, v, f, statuses, 10, 10)
	}
	if statuses["200"] < 200 || statuses["400"] < 100 {
		t.Errorf("answered %v", statuses)
	}
}
