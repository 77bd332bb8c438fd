package gateway

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
)

// bodies are a request of each dialect.
var bodies = map[string]string{
	"/chat/completions": `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`,
	"/responses":        `{"model":"m","input":"Hi"}`,
	"/messages":         `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"Hi"}]}`,
	"/embeddings":       `{"model":"m","input":["Hi","https://example.com"]}`,
}

func streaming(body string) string { return strings.TrimSuffix(body, "}") + `,"stream":true}` }

func TestAScriptAnswersInEveryDialect(t *testing.T) {
	for path, body := range bodies {
		for _, prefix := range []string{"", "/v1"} {
			t.Run(prefix+path, func(t *testing.T) {
				b := newBench(t, "")
				b.session.Script = scriptOf(t, "[{text: Hello there, usage: {input: 7, output: 3}}]")
				ledger := newBooks(ledger.Amount{})
				b.session.Ledger = ledger
				b.serve()
				a := b.ask("POST", prefix+path, body)
				if a.status != 200 || path != "/embeddings" && !strings.Contains(a.body, "Hello there") {
					t.Fatalf("%d %s", a.status, a.body)
				}
				spent, reserved := ledger.spent()
				if reserved.Tokens != 0 || path != "/embeddings" && (spent.Tokens != 10 || spent.Cost != 7*1000+3*3000) {
					t.Errorf("spent %+v, reserved %+v", spent, reserved)
				}
				e := b.told.last(t, 1)
				if e.Status != 200 || e.Spent.Estimated || string(e.Request) != body || string(e.Answer) != a.body || e.Source != FromProvider {
					t.Errorf("%+v", e)
				}
			})
		}
	}
}

func TestAScriptStreamsInEveryDialect(t *testing.T) {
	for path, body := range bodies {
		if path == "/embeddings" {
			continue
		}
		t.Run(path, func(t *testing.T) {
			b := newBench(t, "")
			b.session.Script = scriptOf(t, "[{text: Hello, tool_calls: [{name: ocr, arguments: {page: 1}}], usage: {input: 7, output: 3}}]")
			ledger := newBooks(ledger.Amount{})
			b.session.Ledger = ledger
			b.serve()
			a := b.ask("POST", path, streaming(body))
			if a.status != 200 || !strings.Contains(a.body, "Hello") || !strings.Contains(a.body, "page") || a.header.Get("Content-Type") != "text/event-stream" {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if spent, _ := ledger.spent(); spent.Tokens != 10 {
				t.Errorf("spent %+v", spent)
			}
			if strings.Contains(path, "chat") == strings.Contains(a.body, `"usage"`) {
				t.Errorf("the counts that only the gateway asked for: %s", a.body)
			}
		})
	}
}
