package gateway

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/live"
)

// heard listens to all that a run's providers say.
type heard struct {
	mu    sync.Mutex
	texts []string // of each answer
	ended int
}

func (h *heard) Listen() Ear {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, "")
	return &oneHeard{h, len(h.texts) - 1}
}

type oneHeard struct {
	*heard
	n int
}

func (o *oneHeard) Hear(p live.Piece) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.texts[o.n] += p.Text
}

func (o *oneHeard) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended++
}

// helloes are a stream of each dialect that says hello, and then more.
var helloes = map[string][]string{
	"/chat/completions": {
		`data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"hel"}}]}` + "\n\n",
		`data: {"id":"1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}` + "\n\n" +
			`data: {"id":"1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}` + "\n\ndata: [DONE]\n\n",
	},
	"/messages": {
		`data: {"type":"message_start","message":{"id":"1","role":"assistant","content":[],"usage":{"input_tokens":7,"output_tokens":1}}}` + "\n\n" +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hel"}}` + "\n\n",
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}` + "\n\ndata: {\"type\":\"message_stop\"}\n\n",
	},
	"/responses": {
		`data: {"type":"response.created","response":{"id":"1"}}` + "\n\n" + `data: {"type":"response.output_text.delta","output_index":0,"delta":"hel"}` + "\n\n",
		`data: {"type":"response.output_text.delta","output_index":0,"delta":"lo"}` + "\n\n" +
			`data: {"type":"response.completed","response":{"id":"1","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]}],"usage":{"input_tokens":7,"output_tokens":3}}}` + "\n\n",
	},
}

func TestWhoeverListensHearsAnAnswerBeforeTheRunHasIt(t *testing.T) {
	t.Parallel()
	for path, parts := range helloes {
		for _, asksStream := range []string{`"x":1`, `"stream":true`} {
			goOn := make(chan struct{})
			d := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				stream(w, parts[0])
				<-goOn
				_, _ = io.WriteString(w, parts[1])
			})
			b, h := newBench(t, d.URL), &heard{}
			b.session.Listener = earlier{h, func() { close(goOn) }}
			got := b.serve().ask("POST", "/v1"+path, `{"model":"m","max_tokens":9,"messages":[],"input":"x",`+asksStream+`}`)
			plain := strings.Contains(asksStream, "x")
			if got.status != 200 || plain != (got.header.Get("Content-Type") == typeJSON) || !strings.Contains(got.body, `"hello"`) && plain || plain == strings.HasPrefix(got.body, "data: ") {
				t.Errorf("%s %s: %d %s", path, asksStream, got.status, got.body)
			}
			if sent := d.requests(); len(sent) != 1 || !strings.Contains(sent[0], `"stream":true`) {
				t.Errorf("%s", sent)
			}
			told := b.told.last(t, 1)
			if told.Spent.Usage.Input != 7 || told.Spent.Usage.Output != 3 || told.Spent.Estimated || told.Call.Stream == plain || string(told.Answer) != got.body {
				t.Errorf("%s %s: %+v", path, asksStream, told)
			}
			if h.mu.Lock(); h.texts[0] != "hello" || len(h.texts) != 1 || h.ended != 1 {
				t.Errorf("%s %s: %+v", path, asksStream, h.texts)
			}
			h.mu.Unlock()
		}
	}
}

// earlier has something done as soon as somebody has heard a word.
type earlier struct {
	*heard
	do func()
}

func (e earlier) Listen() Ear { return earlierEar{e.heard.Listen(), sync.OnceFunc(e.do)} }

type earlierEar struct {
	Ear
	do func()
}

func (e earlierEar) Hear(p live.Piece) {
	e.Ear.Hear(p)
	e.do()
}

// Whoever is asked in another dialect is heard in its own.
func TestWhoeverListensHearsAForeignProvider(t *testing.T) {
	foreign(t, func(t *testing.T, asker, provider catalog.Dialect) {
		d := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) { stream(w, helloes[pathsOf[provider]]...) })
		b, _ := foreignBench(t, d.URL, provider)
		h := &heard{}
		b.session.Listener = h
		a := b.serve().ask("POST", pathsOf[asker], bodies[pathsOf[asker]])
		if a.status != 200 || !strings.Contains(a.body, `"hello"`) || a.header.Get("Content-Type") != typeJSON {
			t.Errorf("%d %s", a.status, a.body)
		}
		if h.mu.Lock(); len(h.texts) != 1 || h.texts[0] != "hello" {
			t.Errorf("heard %q", h.texts)
		}
		h.mu.Unlock()
		if e := b.told.last(t, 1); e.Spent.Usage.Input != 7 || e.Spent.Usage.Output != 3 {
			t.Errorf("%+v", e.Spent)
		}
	})
}

func TestAListenerCostsNoRunItsAnswer(t *testing.T) {
	t.Parallel()
	ok := helloes["/chat/completions"]
	const plain = `{"choices":[{"message":{"content":"plain"}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`
	sendPlain := func(w http.ResponseWriter, status int, body string) {
		w.Header().Set("Content-Type", typeJSON)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
	for name, c := range map[string]struct {
		answer      func(n int, w http.ResponseWriter)
		noUsage     bool
		want, heard string
		asked       int
		tokens      int64
	}{
		"it streams to nobody": {func(n int, w http.ResponseWriter) {
			if n == 0 {
				sendPlain(w, 400, `{"error":{"message":"only those who are verified may stream","param":"stream"}}`)
				return
			}
			sendPlain(w, 200, plain)
		}, false, "plain", "", 2, 10},
		"it knows of no streams":    {func(_ int, w http.ResponseWriter) { sendPlain(w, 200, plain) }, false, "plain", "", 1, 10},
		"it can't count them":       {func(_ int, w http.ResponseWriter) { sendPlain(w, 200, plain) }, true, "plain", "", 1, 10},
		"its stream breaks off":     {func(n int, w http.ResponseWriter) { stream(w, ok[:min(1+n, 2)]...) }, false, "hello", "hel|hello", 2, -1},
		"its stream ends in errors": {func(n int, w http.ResponseWriter) { stream(w, ok[0], failures["/chat/completions"]) }, false, "answers with an error", "hel|hel|hel", 3, -1},
		"it quotes its key": {func(_ int, w http.ResponseWriter) {
			stream(w, ok[0], strings.ReplaceAll(ok[1], `"lo"`, `"`+canary+`"`))
		}, false, "quotes its key", "hel", 1, -1},
		"its words are strange": {func(_ int, w http.ResponseWriter) {
			stream(w, `data: {"choices":[{"delta":{"content":["a"]}}]}`+"\n\n", "data: x\n\n", ok[0], ok[1])
		}, false, "hello", "hello", 1, 10},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble(t, func(n int, w http.ResponseWriter, _ *http.Request) { c.answer(n, w) })
			b, h := newBench(t, d.URL), &heard{}
			p := b.catalog.Providers["p"]
			p.NoUsage = c.noUsage
			b.catalog.Providers["p"] = p
			b.session.Listener = h
			got := b.serve().ask("POST", "/v1/chat/completions", `{"model":"m","messages":[]}`)
			if !strings.Contains(got.body, c.want) || strings.Contains(got.body, canary) || len(d.requests()) != c.asked {
				t.Errorf("%d %s after %d", got.status, got.body, len(d.requests()))
			}
			told := b.told.last(t, 1)
			h.mu.Lock()
			defer h.mu.Unlock()
			if all := strings.Trim(strings.Join(h.texts, "|"), "|"); all != c.heard || h.ended != len(h.texts) {
				t.Errorf("heard %q, %d ended", all, h.ended)
			}
			if c.tokens >= 0 && told.Spent.Amount.Tokens != c.tokens {
				t.Errorf("%+v", told.Spent)
			}
		})
	}
}

// deaf may listen, and doesn't.
type deaf struct{}

func (deaf) Listen() Ear { return nil }

func TestWhoDoesNotListenChangesNothing(t *testing.T) {
	t.Parallel()
	d := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) })
	b := newBench(t, d.URL)
	b.session.Listener = deaf{}
	got := b.serve().ask("POST", "/v1/chat/completions", `{"model":"m","messages":[]}`)
	if asked := d.requests(); got.status != 400 || len(asked) != 1 || strings.Contains(asked[0], "stream") {
		t.Errorf("%d after %s", got.status, asked)
	}
}

func TestNobodyListensToEmbeddings(t *testing.T) {
	t.Parallel()
	d := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", typeJSON)
		_, _ = io.WriteString(w, `{"data":[{"embedding":[1]}],"usage":{"prompt_tokens":1}}`)
	})
	b, h := newBench(t, d.URL), &heard{}
	b.session.Listener = h
	if got := b.serve().ask("POST", "/v1/embeddings", `{"model":"m","input":"x"}`); got.status != 200 || len(h.texts) != 0 || strings.Contains(d.requests()[0], "stream") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
