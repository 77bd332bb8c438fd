package gateway

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
)

// What only looks like an image is text: a token a byte.
func TestWhatOnlyLooksSmallIsRefusedUnderABudget(t *testing.T) {
	const size = 150_000
	long := strings.Repeat("many words ", size/11)
	object := `{"type":"base64","media_type":"image/png","data":"` + long + `"}`
	image := `{"type":"image","source":` + object + `}`
	for name, c := range map[string]struct {
		path, body string
		window     int64
	}{
		"a text that begins like an image":   {"/chat/completions", `{"model":"m","messages":[{"role":"user","content":"data:image/` + long + `"}]}`, 0},
		"a part of text that does":           {"/messages", message(`{"type":"text","text":"data:image/png;base64,` + long + `"}`), 0},
		"an input that does":                 {"/responses", `{"model":"m","input":"data:image/` + long + `"}`, 0},
		"the object of an image, alone":      {"/messages", message(`{"type":"tool_use","id":"1","name":"f","input":` + object + `}`), 0},
		"an image in a tool's schema":        {"/messages", with("/messages", `"tools":[{"name":"f","input_schema":{"default":`+image+`}}]`), 0},
		"an image in a call's arguments":     {"/messages", message(`{"type":"tool_use","id":"1","name":"f","input":` + image + `}`), 0},
		"an image beside the messages":       {"/messages", with("/messages", `"metadata":`+image), 0},
		"an image in the system prompt":      {"/messages", with("/messages", `"system":[{"type":"text","text":"x","content":[`+image+`]}]`), 0},
		"an image in an image":               {"/messages", message(`{"type":"image","source":` + image + `}`), 0},
		"a second image in a part":           {"/chat/completions", chat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"},"source":{"url":"data:image/` + long + `"}}`), 0},
		"another dialect's image":            {"/chat/completions", chat(image), 0},
		"a file":                             {"/chat/completions", chat(`{"type":"file","file":{"file_data":"data:application/pdf;base64,` + long + `"}}`), 0},
		"a prediction":                       {"/chat/completions", with("/chat/completions", `"prediction":{"type":"content","content":"data:image/`+long+`"}`), 0},
		"a prediction, which no window ends": {"/chat/completions", with("/chat/completions", `"prediction":{"type":"content","content":"`+long+`"}`), 50_000},
		"texts of which each has the window": {"/embeddings", `{"model":"m","input":["` + long + `"]}`, 50_000},
		"a part without a type":              {"/chat/completions", chat(`{"image_url":"data:image/png;base64,AAAA"}`), 150_000},
		"a message that says it is a call":   {"/chat/completions", `{"model":"m","messages":[{"type":"tool_use","role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`, 150_000},
		"a text that can be cited":           {"/messages", message(`{"type":"document","citations":{"enabled":true},"source":{"type":"text","media_type":"text/plain","data":"A. A."}}`), 150_000},
		"a result that can be cited":         {"/messages", message(`{"type":"search_result","source":"x","citations":{"enabled":true},"content":[{"type":"text","text":"A. A."}]}`), 150_000},
		"a document":                         {"/messages", message(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`), 150_000},
	} {
		for _, kind := range []catalog.Kind{catalog.Compatible, catalog.OpenAI, catalog.Anthropic} {
			t.Run(fmt.Sprint(name, " at ", kind), func(t *testing.T) {
				b, provider := budgeted(t, kind, c.window)
				p := b.ask("POST", c.path, c.body).problem(t, 402, RuleTokens)
				if len(provider.requests()) > 0 || !strings.Contains(p.Error.Message, "100000 of 100000 are left") {
					t.Errorf("%+v", p)
				}
			})
		}
	}
}

// budgeted is a bench with a budget of 100,000 tokens before a provider of a kind.
func budgeted(t *testing.T, kind catalog.Kind, window int64) (*bench, *double) {
	provider := newDouble(t, well)
	b := newBench(t, provider.URL)
	b.session.Ledger = newBooks(ledger.Amount{Tokens: 100_000})
	p, m := b.catalog.Providers["p"], b.catalog.Models["m"]
	p.Kind, m.Context = kind, window
	b.catalog.Providers["p"], b.catalog.Models["m"] = p, m
	return b.serve(), provider
}

func TestNoTextTakesMoreThanTheWindow(t *testing.T) {
	b, _ := budgeted(t, catalog.Compatible, 50_000)
	if a := b.ask("POST", "/chat/completions", chat(`{"type":"text","text":"`+strings.Repeat("x", 500_000)+`"}`)); a.status != 200 {
		t.Error(a.body)
	}
}

// A text that became few tokens says nothing of the next one.
func TestNoTextTeachesTheBound(t *testing.T) {
	b, _ := budgeted(t, catalog.Compatible, 0)
	asking := func(text string) string { return `{"model":"m","messages":[{"role":"user","content":"` + text + `"}]}` }
	if a := b.ask("POST", "/chat/completions", asking(strings.Repeat(" ", 18_000))); a.status != 200 {
		t.Fatal(a.body)
	}
	b.ask("POST", "/chat/completions", asking(strings.Repeat("many words ", 45_000))).problem(t, 402, RuleTokens)
}

func TestAnImageIsBoundedByItsVendorsRuleElseByTheWindow(t *testing.T) {
	const rule, window = 4784, 128_000
	inline, address := strings.Repeat("A", 100_000), "data:image/png;base64,"+strings.Repeat("A", 100_000)
	for path, c := range map[string]struct{ data, part, body string }{
		"/chat/completions": {address, `{"type":"image_url","image_url":{"url":%q}}`, chat("%s")},
		"/responses":        {address, `{"type":"input_image","image_url":%q}`, response("%s")},
		"/messages":         {inline, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`, message("%s")},
	} {
		part := fmt.Sprintf(c.part, c.data)
		body := fmt.Sprintf(c.body, part+","+part)
		text := int64(len(body) - 2*len(strconv.Quote(c.data)))
		for kind, want := range map[catalog.Kind]int64{catalog.Anthropic: text + added + 2*rule, catalog.OpenAI: window, catalog.Compatible: window, catalog.Script: int64(len(body)) + added} {
			t.Run(fmt.Sprint(path, " at ", kind), func(t *testing.T) {
				d, _ := dialectAt(path)
				q, err := readRequest(d, []byte(body))
				must(t, err)
				must(t, q.seal("m", catalog.Model{}, true))
				if bound, known := q.inputBound(kind, window); !known || bound != want {
					t.Errorf("%d, %v, want %d", bound, known, want)
				}
				if _, known := q.inputBound(kind, 0); known != (kind == catalog.Anthropic || kind == catalog.Script) {
					t.Errorf("without a window it is known: %v", known)
				}
			})
		}
	}
}

func TestWhatNobodyCanBoundIsRefusedUnderABudget(t *testing.T) {
	image := chat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`)
	for name, c := range map[string]struct {
		body            string
		limited, window bool
		allow           string
		status          int
	}{
		"an image":                       {image, true, false, "", 402},
		"an image within a window":       {image, true, true, "", 200},
		"an image without a budget":      {image, false, false, "", 200},
		"an address, which is allowed":   {chat(`{"type":"image_url","image_url":{"url":"https://x/"}}`), true, false, "remote_urls", 402},
		"a field that brings more":       {with("/chat/completions", `"previous_response_id":"1"`), true, false, "field:previous_response_id", 402},
		"a template of the request":      {with("/chat/completions", `"chat_template":"x"`), true, false, "field:chat_template", 402},
		"a field that brings nothing":    {with("/chat/completions", `"top_k":3`), true, false, "field:top_k", 200},
		"a tool that the provider runs":  {with("/chat/completions", `"tools":[{"type":"web_search"}]`), true, false, "web_search", 402},
		"a part of a kind of the server": {chat(`{"type":"video_url","video_url":{"url":"data:video/mp4;base64,AAAA"}}`), true, false, "part:video_url", 402},
	} {
		t.Run(name, func(t *testing.T) {
			b, provider := strictBench(t, c.allow)
			b.session.Limited = func() (bool, bool) { return c.limited, false }
			m := b.catalog.Models["m"]
			if c.window {
				m.Context = 1000
			}
			b.catalog.Models["m"] = m
			a := b.serve().ask("POST", "/chat/completions", c.body)
			if c.status == 200 {
				if a.status != 200 {
					t.Error(a.body)
				}
				return
			}
			if p := a.problem(t, c.status, RuleContext); !strings.Contains(p.Error.Hint, "models.m.context") || len(provider.requests()) > 0 {
				t.Errorf("%+v", p)
			}
		})
	}
}

// Nobody's bound is worth more than the provider's own count.
func TestWhatComesOverABoundIsChargedAndTheNextIsRefused(t *testing.T) {
	provider := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		answering(w, `{"choices":[{}],"usage":{"prompt_tokens":70000,"completion_tokens":5}}`)
	})
	kept := newBooks(ledger.Amount{Tokens: 50_000})
	b := newBench(t, provider.URL)
	b.session.Ledger = kept
	b.serve()
	if a := b.ask("POST", "/chat/completions", bodies["/chat/completions"]); a.status != 200 {
		t.Fatal(a.body)
	}
	if spent, reserved := kept.spent(); spent.Tokens != 70_005 || reserved.Tokens != 0 {
		t.Errorf("%+v, %+v", spent, reserved)
	}
	if p := b.ask("POST", "/chat/completions", bodies["/chat/completions"]).problem(t, 402, RuleTokens); !strings.Contains(p.Error.Message, " 0 of 50000 are left") {
		t.Errorf("%+v", p)
	}
}

// The pace of tokens a minute is that of what was spent, not of bounds.
func TestThePaceIsThatOfWhatWasSpent(t *testing.T) {
	for spent, usage := range map[float64]string{10: plainAnswer, 5000: `{"choices":[{}],"usage":{"prompt_tokens":4990,"completion_tokens":10}}`} {
		provider := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) { answering(w, usage) })
		b := newBench(t, provider.URL)
		m := b.catalog.Models["m"]
		m.TPM = 60
		b.catalog.Models["m"] = m
		if a := b.serve().ask("POST", "/chat/completions", bodies["/chat/completions"]); a.status != 200 {
			t.Fatal(a.body)
		}
		const full, minute = 6, 60
		g := b.gw.gate("model m")
		g.mu.Lock()
		if left := g.tokens.level; left < full-spent || left > min(full-spent+minute, full) {
			t.Errorf("%v tokens were spent, and %v are left of %v", spent, left, full)
		}
		g.mu.Unlock()
	}
}
