package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
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
func (f *forger) size() int { return 1 << f.IntN(f.IntN(13)+1) }

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
		s.Run, s.Recorder, s.Limited, s.Ledger = runName(i), nil, func() (bool, bool) { return true, false }, bounded{watching{&books{tree: r.tree, id: runName(i)}, r}}
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
