package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
)

// double is a provider that does as a test says.
type double struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // bodies
	header []http.Header
}

// newDouble answers the n-th request, from 0, by answer.
func newDouble(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *double {
	d := &double{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what came
		d.mu.Lock()
		n := len(d.asked)
		d.asked, d.header = append(d.asked, string(body)), append(d.header, r.Header)
		d.mu.Unlock()
		answer(n, w, r)
	}))
	t.Cleanup(d.Close)
	t.Cleanup(d.CloseClientConnections)
	return d
}

func (d *double) requests() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.asked...)
}

// events are the stream of each dialect, with its counts: 7 tokens in, 3 out.
var events = map[string][]string{
	"/chat/completions": {
		`data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":null}` + "\n\n",
		`data: {"id":"1","choices":[{"index":0,"delta":{"content":"Grüße 👋 \"error\""}}],"usage":null}` + "\n\n",
		`data: {"id":"1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}` + "\n\n",
		"data: [DONE]\n\n",
	},
	"/responses": {
		`event: response.created` + "\n" + `data: {"type":"response.created","response":{"id":"1","usage":null,"error":null}}` + "\n\n",
		`event: response.output_text.delta` + "\n" + `data: {"type":"response.output_text.delta","delta":"Grüße 👋"}` + "\n\n",
		`event: response.completed` + "\n" + `data: {"type":"response.completed","response":{"id":"1","usage":{"input_tokens":7,"output_tokens":3}}}` + "\n\n",
	},
	"/messages": {
		`event: message_start` + "\n" + `data: {"type":"message_start","message":{"id":"1","usage":{"input_tokens":4,"cache_read_input_tokens":3,"output_tokens":1}}}` + "\n\n",
		`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Grüße 👋"}}` + "\n\n",
		`event: message_delta` + "\n" + `data: {"type":"message_delta","delta":{},"usage":{"output_tokens":3}}` + "\n\n",
		`event: message_stop` + "\n" + `data: {"type":"message_stop"}` + "\n\n",
	},
}

// failures are an error in a stream of each dialect.
var failures = map[string]string{
	"/chat/completions": `data: {"error":{"type":"server_error","message":"no"}}` + "\n\n",
	"/responses":        `event: error` + "\n" + `data: {"type":"error","code":"server_error","message":"no"}` + "\n\n",
	"/messages":         `event: error` + "\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"no"}}` + "\n\n",
}

// beforeWords is what a provider says before its first word.
func beforeWords(ok []string, path string) string {
	if path != "/responses" {
		return ok[0]
	}
	return ok[0] + `data: {"type":"response.in_progress","response":{"id":"1","error":null}}` + "\n\n" +
		`data: {"type":"response.output_item.added","item":{"type":"reasoning","id":"r","summary":[]}}` + "\n\n" +
		`data: {"type":"response.output_item.added","item":{"type":"message","role":"assistant","content":[]}}` + "\n\n" +
		`data: {"type":"response.content_part.added","part":{"type":"output_text","text":"","annotations":[]}}` + "\n\n"
}

// stream sends parts of a stream, each at once.
func stream(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(200)
	for _, part := range parts {
		_, _ = io.WriteString(w, part)
		_ = http.NewResponseController(w).Flush()
	}
}

// hang waits until the gateway has gone.
func hang(r *http.Request) { <-r.Context().Done() }

func cutConnection() { panic(http.ErrAbortHandler) }

// evil is one way in which a provider answers.
type evil struct {
	name   string
	answer func(n int, w http.ResponseWriter, r *http.Request, ok []string, path string)
	status int
	rule   string                                               // of a plain error, or of the event at the end
	want   func(ok []string, path string) string                // what comes out; nil: a plain error
	asked  int                                                  // 0: once
	spent  func(path string, worst int64) (ledger.Amount, bool) // nil: 10 tokens, exact
}

func all(ok []string, _ string) string    { return strings.Join(ok, "") }
func first2(ok []string, _ string) string { return strings.Join(ok[:2], "") }
func nothingSpent(string, int64) (ledger.Amount, bool) {
	return ledger.Amount{}, false
}

func inFull(_ string, worst int64) (ledger.Amount, bool) { return ledger.Amount{Tokens: worst}, true }

func thrice(_ string, worst int64) (ledger.Amount, bool) {
	return ledger.Amount{Tokens: 3 * worst}, true
}

var evils = []evil{
	{name: "as it should", want: all, answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) { stream(w, ok...) }},
	{name: "byte by byte", want: all, answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) {
		stream(w, strings.Split(strings.Join(ok, ""), "")...)
		// Split cuts between characters; the next one cuts within them
	}},
	{name: "cut within characters", want: all, answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) {
		var parts []string
		for whole := strings.Join(ok, ""); whole != ""; whole = whole[min(3, len(whole)):] {
			parts = append(parts, whole[:min(3, len(whole))])
		}
		stream(w, parts...)
	}},
	{
		name: "CRLF", want: func(ok []string, p string) string { return strings.ReplaceAll(all(ok, p), "\n", "\r\n") },
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, p string) {
			parts := strings.Split(strings.ReplaceAll(all(ok, p), "\n", "\r\n"), "")
			last := len(parts) - 2 // the CR that ends the last event: the LF after it is awaited for restTime only
			stream(w, append(parts[:last], parts[last]+parts[last+1])...)
		},
	},
	{
		name: "CR alone", want: func(ok []string, p string) string { return strings.ReplaceAll(all(ok, p), "\n", "\r") },
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, p string) {
			stream(w, strings.ReplaceAll(all(ok, p), "\n", "\r"))
		},
	},
	{
		name: "comments and pings", want: func(ok []string, _ string) string {
			return ": hi\n\n" + ping + ok[0] + ping + ": x\n" + strings.Join(ok[1:], "")
		},
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) {
			stream(w, ": hi\n\n", ping, ok[0], ping, ": x\n", strings.Join(ok[1:], ""))
		},
	},
	{
		name: "a byte order mark, and data in two lines", want: func(ok []string, p string) string {
			return "\xef\xbb\xbf" + strings.Replace(all(ok, p), `"id":`, "\ndata: \"id\":", 1)
		},
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, p string) {
			stream(w, "\xef\xbb\xbf"+strings.Replace(all(ok, p), `"id":`, "\ndata: \"id\":", 1))
		},
	},
	{
		name: "a line of 8 MiB", want: func(ok []string, p string) string { return ok[0] + big(ok) + strings.Join(ok[1:], "") },
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) {
			stream(w, ok[0], big(ok), strings.Join(ok[1:], ""))
		},
	},
	{
		name: "a longer line", want: first2, rule: RuleProvider, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) {
			stream(w, ok[0], ok[1], "data: ", strings.Repeat("x", 9<<20))
		},
	},
	{
		name: "no usage", want: func(ok []string, _ string) string { return ok[0] + ok[1] + noUsage(ok) }, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) {
			stream(w, ok[0], ok[1], noUsage(ok))
		},
	},
	{
		name: "usage zero", want: func(ok []string, p string) string { return zeroes(all(ok, p)) }, spent: nothingSpent,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, p string) {
			stream(w, zeroes(all(ok, p)))
		},
	},
	{
		name: "usage that isn't a number", want: func(ok []string, p string) string { return strings.ReplaceAll(all(ok, p), ":3", ":-3") }, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, p string) {
			stream(w, strings.ReplaceAll(all(ok, p), ":3", ":-3"))
		},
	},
	{
		name: "no last event", want: func(ok []string, _ string) string {
			if strings.Contains(ok[len(ok)-1], "response.completed") {
				return strings.Join(ok, "")
			}
			return strings.Join(ok[:len(ok)-1], "")
		},

		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, p string) {
			if p == "/responses" { // it has no other end
				stream(w, ok...)
				return
			}
			stream(w, ok[:len(ok)-1]...)
		},
	},
	{
		name: "an end without the last event", want: first2, rule: RuleProvider, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) {
			stream(w, ok[:2]...)
		},
	},
	{
		name: "no empty line at the end", want: func(ok []string, p string) string { return strings.TrimSuffix(all(ok, p), "\n") },
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, p string) {
			stream(w, strings.TrimSuffix(all(ok, p), "\n"))
		},
	},
	{
		name: "an error first", status: 502, rule: RuleProvider, asked: 3, spent: nothingSpent,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, _ []string, p string) {
			stream(w, ping, failures[p])
		},
	},
	{
		name: "an error first, once", want: all, asked: 2,
		answer: func(n int, w http.ResponseWriter, _ *http.Request, ok []string, p string) {
			if n == 0 {
				stream(w, failures[p])
				return
			}
			stream(w, ok...)
		},
	},
	{
		name: "an error after the opening", status: 502, rule: RuleProvider, asked: 3, spent: nothingSpent,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, p string) {
			stream(w, beforeWords(ok, p)+failures[p])
		},
	},
	{
		name: "an error after the opening, once", want: all, asked: 2,
		answer: func(n int, w http.ResponseWriter, _ *http.Request, ok []string, p string) {
			if n == 0 {
				stream(w, beforeWords(ok, p)+failures[p])
				return
			}
			stream(w, ok...)
		},
	},
	{
		name: "an error after content", want: func(ok []string, p string) string { return ok[0] + ok[1] + failures[p] }, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, p string) {
			stream(w, ok[0], ok[1], failures[p])
		},
	},
	{
		name: "429 with Retry-After, then well", want: all, asked: 2,
		answer: func(n int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) {
			if n == 0 {
				w.Header().Set("Retry-After-Ms", "5")
				w.WriteHeader(429)
				return
			}
			stream(w, ok...)
		},
	},
	{
		name: "429 for ever", status: 429, rule: RuleRate, asked: 3, spent: nothingSpent,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, _ []string, _ string) { w.WriteHeader(429) },
	},
	{
		name: "429 for longer than it is worth", status: 429, rule: RuleRate, asked: 1, spent: nothingSpent,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, _ []string, _ string) {
			w.Header().Set("Retry-After", "61")
			w.WriteHeader(429)
		},
	},
	{
		name: "529", status: 502, rule: RuleProvider, asked: 3, spent: nothingSpent,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, _ []string, _ string) { w.WriteHeader(529) },
	},
	{
		name: "a hang before the first byte", status: 504, rule: RuleSilent, spent: inFull,
		answer: func(_ int, _ http.ResponseWriter, r *http.Request, _ []string, _ string) { hang(r) },
	},
	{
		name: "a hang before the first event", status: 504, rule: RuleSilent, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, r *http.Request, _ []string, _ string) {
			stream(w, ": wait\n\n")
			hang(r)
		},
	},
	{
		name: "a hang after content", want: first2, rule: RuleSilent, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, r *http.Request, ok []string, _ string) {
			stream(w, ok[0], ok[1])
			hang(r)
		},
	},
	{
		name: "a cut before the first byte", status: 502, rule: RuleProvider, asked: 3, spent: thrice,
		answer: func(int, http.ResponseWriter, *http.Request, []string, string) { cutConnection() },
	},
	{
		name: "a cut after content", want: first2, rule: RuleProvider, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) {
			stream(w, ok[0], ok[1])
			cutConnection()
		},
	},
	{
		name: "an end before content", status: 502, rule: RuleProvider, asked: 3, spent: thrice,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, _ []string, _ string) { stream(w, ": hi\n\n") },
	},
	{
		name: "a redirect", status: 502, rule: RuleProvider, spent: nothingSpent,
		answer: func(_ int, w http.ResponseWriter, r *http.Request, _ []string, _ string) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
	},
	{
		name: "HTML", status: 502, rule: RuleProvider, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, _ []string, _ string) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		},
	},
	{
		name: "something compressed", status: 502, rule: RuleProvider, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) {
			w.Header().Set("Content-Encoding", "gzip")
			stream(w, ok...)
		},
	},
	{
		name: "a bad key, which it quotes", status: 502, rule: RuleKey, spent: nothingSpent,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, _ []string, _ string) {
			w.WriteHeader(401)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s"}}`, canary)
		},
	},
	{
		name: "the key in an error of the request", status: 400, rule: RuleProvider, spent: nothingSpent,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, _ []string, _ string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"with %s"}}`, canary)
		},
	},
	{
		name: "the key in a header and in the first event", status: 502, rule: RuleKey, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, _ []string, _ string) {
			w.Header().Set("X-Request-Id", canary)
			stream(w, "data: {\"x\":\""+canary+"\"}\n\n")
		},
	},
	{
		name: "the key after content", want: first2, rule: RuleKey, spent: inFull,
		answer: func(_ int, w http.ResponseWriter, _ *http.Request, ok []string, _ string) {
			w.Header().Set("X-Request-Id", canary)
			stream(w, ok[0], ok[1], "data: {\"x\":\""+canary+"\"}\n\n", ok[2])
		},
	},
}

const ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n"

func big(ok []string) string {
	return strings.Replace(ok[1], "Grüße", strings.Repeat("x", 8<<20-len(ok[1])), 1)
}

// noUsage is the end of a stream without its counts.
func noUsage(ok []string) string {
	last := ok[len(ok)-1]
	return strings.Replace(last, `,"usage":{"input_tokens":7,"output_tokens":3}`, "", 1)
}

func zeroes(text string) string {
	return strings.NewReplacer(`_tokens":10`, `_tokens":0`, `_tokens":7`, `_tokens":0`, `_tokens":3`, `_tokens":0`, `_tokens":4`, `_tokens":0`, `_tokens":1`, `_tokens":0`).Replace(text)
}

func TestAProviderMayAnswerAsItLikes(t *testing.T) {
	for path, ok := range events {
		for _, e := range evils {
			t.Run(strings.TrimPrefix(path, "/")+"/"+e.name, func(t *testing.T) {
				t.Parallel()
				e.try(t, path, ok)
			})
		}
	}
}

func (e evil) try(t *testing.T, path string, ok []string) {
	if !strings.Contains(e.name, "hang") || !e.tryFor(t, path, ok, 2*time.Second) {
		e.tryFor(t, path, ok, longSilence)
	}
}

// tryFor has a gateway that bears silence for so long. On a busy machine a short time may end before the
// provider has said all that it says: then nothing is checked, and it returns false.
func (e evil) tryFor(t *testing.T, path string, ok []string, silence time.Duration) (inTime bool) {
	t.Helper()
	provider := newDouble(t, func(n int, w http.ResponseWriter, r *http.Request) { e.answer(n, w, r, ok, path) })
	b := newBench(t, provider.URL)
	b.opts.FirstByte, b.opts.Silence = silence, silence
	kept := newBooks(ledger.Amount{})
	b.session.Ledger = kept
	b.serve()
	body := streaming(bodies[path])
	if strings.Contains(path, "chat") {
		body = strings.TrimSuffix(body, "}") + `,"stream_options":{"include_usage":true}}`
	}
	a, err := tryAt(t, b.server.URL, "POST", "/v1"+path, body)
	told := b.told.last(t, 1)
	asked := len(provider.requests())
	late := err != nil || asked == 0 || !told.Spent.Estimated || e.want != nil && !strings.HasPrefix(a.body, e.want(ok, path))
	if late && silence < longSilence {
		return false
	}
	must(t, err)
	shown := fmt.Sprint(a.header, told.Rule, told.Call) + a.body + string(told.Answer) + string(told.Request)
	if strings.Contains(shown, canary) {
		t.Fatalf("the key is to be seen: %v %+v", a, told)
	}
	e.checkAnswer(t, a, path, ok)
	if asked != max(e.asked, 1) || told.Attempts != asked {
		t.Errorf("asked %d times, %d told", asked, told.Attempts)
	}
	e.checkSpent(t, kept, told, path, int64(len(body))+added+told.Call.MaxTokens)
	return true
}

func (e evil) checkAnswer(t *testing.T, a answered, path string, ok []string) {
	t.Helper()
	if e.want == nil {
		a.problem(t, e.status, e.rule)
		return
	}
	want := e.want(ok, path)
	rest, found := strings.CutPrefix(a.body, want)
	switch {
	case a.status != 200 || !found:
		t.Fatalf("%d, %d bytes, want %d: %.300s", a.status, len(a.body), len(want), a.body)
	case e.rule == "" && rest != "":
		t.Errorf("there is more: %.300s", rest)
	case e.rule != "" && (!strings.Contains(rest, `"rule":"`+e.rule+`"`) || !strings.HasSuffix(rest, "\n\n") || strings.Contains(path, "chat") == strings.HasPrefix(rest, "event: error\n")):
		t.Errorf("it ends with %q", rest)
	}
}

func (e evil) checkSpent(t *testing.T, kept *books, told Exchange, path string, worst int64) {
	t.Helper()
	want, estimated := ledger.Amount{Tokens: 10}, false
	if e.spent != nil {
		want, estimated = e.spent(path, worst)
	}
	spent, reserved := kept.spent()
	if reserved != (ledger.Amount{}) || spent.Tokens != want.Tokens || told.Spent.Amount != spent || told.Spent.Estimated != estimated {
		t.Errorf("spent %+v (told %+v), set aside %+v; want %+v, estimated %v", spent, told.Spent, reserved, want, estimated)
	}
}
