package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/gateway/catalog"
	"github.com/agent-on-demand/aod/gateway/ledger"
)

// windows are the models of a tree's runs, and how much they can read; 0 is one that the
// operator hasn't written down.
var windows = []struct {
	kind    catalog.Kind
	window  int64
	written bool
}{{catalog.Anthropic, 200_000, true}, {catalog.OpenAI, 400_000, true}, {catalog.Compatible, 32_768, true}, {catalog.Compatible, 32_768, false}, {catalog.Anthropic, 200_000, false}}

// forger makes bodies that are to look smaller than they are.
type forger struct {
	*rand.Rand
	made map[string]int // by what is in them
}

func (f *forger) one(of ...func() string) string { return of[f.IntN(len(of))]() }

func (f *forger) named(name, text string) string {
	f.made[name]++
	return text
}

// size is mostly small.
func (f *forger) size() int { return 1 << f.IntN(f.IntN(15)+1) }

func (f *forger) text() string {
	letters := func() string { return strings.Repeat("é#", f.size()) }
	return f.one(
		letters,
		func() string { return strings.Repeat(" ", f.size()) },
		func() string {
			return f.named("a text like an image", "data:image/png;base64,"+strings.Repeat("A", f.size()))
		},
	)
}

// inline is an image by its looks, of any size.
func (f *forger) inline() string {
	return picture(1+f.IntN(8000), 1+f.IntN(8000), f.size())
}

// free is an object in which nobody looks for an image.
func (f *forger) free() string {
	return f.one(
		func() string { return fmt.Sprintf(`{"q":%q}`, f.text()) },
		func() string {
			return f.named("base64 anywhere", fmt.Sprintf(`{"type":"base64","media_type":"image/png","data":%q}`, strings.Repeat("A", f.size())))
		},
		func() string {
			return f.named("an image in an argument", fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`, strings.Repeat("A", f.size())))
		},
	)
}

func (f *forger) tools(path string) string {
	if f.IntN(3) > 0 {
		return ""
	}
	schema := f.free()
	switch path {
	case "/messages":
		return fmt.Sprintf(`,"tools":[{"name":"f","input_schema":{"default":%s}}]`, schema)
	case "/responses":
		return fmt.Sprintf(`,"tools":[{"type":"function","name":"f","parameters":{"default":%s}}]`, schema)
	}
	return fmt.Sprintf(`,"tools":[{"type":"function","function":{"name":"f","parameters":{"default":%s}}}]`, schema)
}

func (f *forger) parts(path string) string {
	var all []string
	for range 1 + f.IntN(3) {
		all = append(all, f.part(path))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func (f *forger) part(path string) string {
	text := func() string { return fmt.Sprintf(`{"type":"text","text":%q}`, f.text()) }
	image := func() string { return f.named("an image", f.image(path)) }
	if path == "/messages" {
		return f.one(text, text, image,
			func() string { return fmt.Sprintf(`{"type":"tool_use","id":"1","name":"f","input":%s}`, f.free()) },
			func() string {
				return f.named("an image in a result", fmt.Sprintf(`{"type":"tool_result","tool_use_id":"1","content":[%s]}`, f.image(path)))
			},
			func() string {
				return f.named("a document", `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUFB"}}`)
			},
			func() string {
				return f.named("a document of text", fmt.Sprintf(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":%q}}`, f.text()))
			})
	}
	return f.one(text, text, image, func() string {
		return f.named("a recording", `{"type":"input_audio","input_audio":{"format":"wav","data":"QUFB"}}`)
	})
}

func (f *forger) image(path string) string {
	switch path {
	case "/messages":
		return fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`, f.inline())
	case "/responses":
		return fmt.Sprintf(`{"type":"input_image","image_url":"data:image/png;base64,%s"}`, f.inline())
	}
	return fmt.Sprintf(`{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}`, f.inline())
}

// body is a request in a dialect.
func (f *forger) body(path string) string {
	most := 1 + f.IntN(400)
	content := f.one(func() string { return fmt.Sprintf("%q", f.text()) }, func() string { return f.parts(path) })
	switch path {
	case "/messages":
		system := f.one(func() string { return "" }, func() string { return fmt.Sprintf(`,"system":%q`, f.text()) },
			func() string { return f.named("an image elsewhere", `,"system":[`+f.image(path)+`]`) })
		return fmt.Sprintf(`{"model":"m","max_tokens":%d,"messages":[{"role":"user","content":%s}]%s%s}`, most, content, system, f.tools(path))
	case "/responses":
		return fmt.Sprintf(`{"model":"m","max_output_tokens":%d,"input":[{"type":"message","role":"user","content":%s},{"type":"function_call_output","call_id":"1","output":%s}]%s}`,
			most, content, f.parts(path), f.tools(path))
	case "/embeddings":
		return fmt.Sprintf(`{"model":"m","input":[%q,%q,%q]}`, f.text(), f.text(), f.text())
	}
	more := f.one(func() string { return "" }, func() string { return fmt.Sprintf(`,"n":%d`, 1+f.IntN(3)) },
		func() string {
			return f.named("a prediction", fmt.Sprintf(`,"prediction":{"type":"content","content":%q}`, f.text()))
		},
		func() string {
			return fmt.Sprintf(`,"response_format":{"type":"json_schema","json_schema":{"schema":%s}}`, f.free())
		})
	return fmt.Sprintf(`{"model":"m","max_completion_tokens":%d,"messages":[{"role":"user","content":%s}]%s%s}`, most, content, more, f.tools(path))
}

// bounded is a ledger under which no request takes more than was set aside for it.
type bounded struct{ watching }

type boundedHold struct {
	Hold
	round *round
	worst ledger.Amount
}

func (b bounded) Reserve(ctx context.Context, c Call, worst ledger.Amount) (Hold, error) {
	h, err := b.watching.Reserve(ctx, c, worst)
	if err != nil {
		return nil, err
	}
	return boundedHold{h, b.round, worst}, nil
}

func (h boundedHold) Settle(ctx context.Context, c Call, s Spent) error {
	if s.Amount.Tokens > h.worst.Tokens || s.Amount.Cost > h.worst.Cost {
		h.round.t.Errorf("%s takes %+v, and %+v was set aside", c.Dialect, s.Amount, h.worst)
	}
	return h.Hold.Settle(ctx, c, s)
}

// A tree has 20 runs that ask at once, of a vendor that counts by its rules. Whatever they write,
// nothing that is spent or set aside is ever over a budget, and the bill is what was counted.
func TestNoBodyPassesABudget(t *testing.T) {
	const trees, runs, each = 50, 20, 10
	made, statuses := map[string]int{}, map[string]int{}
	for n := range trees {
		random := rand.New(rand.NewPCG(2, uint64(n)))
		f := &forger{random, made}
		w := windows[n%len(windows)]
		v := &vendor{kind: w.kind, window: w.window}
		b := newBench(t, "http://vendor.test/v1")
		p, m := b.catalog.Providers["p"], b.catalog.Models["m"]
		p.Kind, p.AnyField, m.MaxOutput = w.kind, false, 400
		m.Price = &catalog.Price{Input: 1e9, Cached: 1e9, CacheWrite: 1e9, Output: 3e9}
		if w.written {
			m.Context = w.window
		}
		b.catalog.Providers["p"], b.catalog.Models["m"], b.opts.Transport = p, m, v
		b.serve()
		askAll(t, b, v, f, statuses, runs, each)
		if t.Failed() {
			t.Fatalf("in tree %d, a model %+v", n, w)
		}
	}
	for name, n := range made {
		if n < 20 {
			t.Errorf("%s was made %d times", name, n)
		}
	}
	if statuses["200"] < trees*runs*each/4 || statuses["402"] < trees*runs*each/20 || len(made) != 10 {
		t.Errorf("answered %v, made %v", statuses, made)
	}
}

// askAll has the runs of a tree ask at once, each one request after the other.
func askAll(t *testing.T, b *bench, v *vendor, f *forger, statuses map[string]int, runs, each int) {
	r := &round{t: t, tree: ledger.New(), limits: []ledger.Amount{{Tokens: 50_000 + f.Int64N(4_000_000)}}}
	r.tree.Open(runName(0), "", r.limits[0])
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := 1; i <= runs; i++ {
		r.limits = append(r.limits, ledger.Amount{Tokens: f.Int64N(2) * (20_000 + f.Int64N(1_000_000)), Cost: f.Int64N(2) * (1 + f.Int64N(4)) * 1e8})
		r.tree.Open(runName(i), runName(0), r.limits[i])
	}
	for i := 1; i <= runs; i++ {
		s := b.session
		s.Run, s.Recorder, s.Limited, s.Ledger = runName(i), nil, true, bounded{watching{&books{tree: r.tree, id: runName(i)}, r}}
		handler := b.gw.Handler(s)
		var paths, bodies []string
		for range each {
			path := []string{"/chat/completions", "/responses", "/messages", "/embeddings"}[f.IntN(4)]
			paths, bodies = append(paths, path), append(bodies, f.body(path))
		}
		all.Go(func() {
			for n, body := range bodies {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "POST", paths[n], strings.NewReader(body)))
				mu.Lock()
				statuses[fmt.Sprint(answer.Code)]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	r.compare(ledger.Amount{}, v.bill)
}

// What only looks like an image is text: a token a byte.
func TestWhatOnlyLooksSmallIsRefusedUnderABudget(t *testing.T) {
	const size = 500_000
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
	const text, size = 2000, 1_000_000
	base64 := strings.Repeat("A", size)
	picture := map[string]string{
		"/chat/completions": `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + base64 + `"}}`,
		"/responses":        `{"type":"input_image","image_url":"data:image/png;base64,` + base64 + `"}`,
		"/messages":         `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64 + `"}}`,
	}
	body := map[string]func(string) string{"/chat/completions": chat, "/responses": response, "/messages": message}
	for path, part := range picture {
		for kind, want := range map[catalog.Kind]int64{catalog.Anthropic: 2*4784 + added + text, catalog.OpenAI: 128_000, catalog.Compatible: 128_000} {
			t.Run(fmt.Sprint(path, kind), func(t *testing.T) {
				d, _ := dialectAt(path)
				q, err := readRequest(d, []byte(body[path](part+","+part)))
				must(t, err)
				must(t, q.seal("m", catalog.Model{}, true))
				if bound, known := q.inputBound(kind, 128_000); !known || bound > want || bound < want-text {
					t.Errorf("%d, %v, want %d", bound, known, want)
				}
				if bound, known := q.inputBound(kind, 0); known != (kind == catalog.Anthropic) || bound < 2*4784 {
					t.Errorf("without a window: %d, %v", bound, known)
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
			b.session.Limited = c.limited
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
		answering(w, `{"usage":{"prompt_tokens":70000,"completion_tokens":5}}`)
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
