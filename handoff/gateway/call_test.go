package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// plain answers with usage in the words of every dialect: 7 in, 3 out.
const plainAnswer = "{ \"id\": \"1\",\n \"x\": 1.0, \"choices\":[{}],\"data\":[{}],\"content\":[],\"output\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"input_tokens\":7,\"output_tokens\":3}}\n"

func answering(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "req_1")
	w.Header().Set("Openai-Project", "org_secret")
	_, _ = io.WriteString(w, body)
}

func well(_ int, w http.ResponseWriter, _ *http.Request) { answering(w, plainAnswer) }

func TestAPlainAnswerIsPassedOnByteForByte(t *testing.T) {
	for path, body := range bodies {
		t.Run(path, func(t *testing.T) {
			provider := newDouble(t, well)
			b := newBench(t, provider.URL+"/v9").serve()
			a := b.ask("POST", path, body, "Anthropic-Beta: x", "Cookie: y", "Authorization: Bearer aod")
			if a.status != 200 || a.body != plainAnswer || a.header.Get("X-Request-Id") != "req_1" || a.header.Get("Openai-Project") != "" {
				t.Errorf("%d %s %v", a.status, a.body, a.header)
			}
			h := provider.header[0]
			if h.Get("Authorization") != "Bearer "+canary || h.Get("Cookie") != "" || h.Get("Anthropic-Beta") != "x" || h.Get("Accept-Encoding") != "identity" {
				t.Errorf("the provider got %v", h)
			}
			if (h.Get("X-Api-Key") == canary) != (path == "/messages") || (h.Get("Anthropic-Version") != "") != (path == "/messages") {
				t.Errorf("the provider got %v", h)
			}
		})
	}
}

// Whose account pays, and who asks, is the operator's word alone.
func TestAProviderGetsNoOtherHeaderOfTheCaller(t *testing.T) {
	const theirs = "of-the-caller"
	var headers []string
	for _, name := range []string{
		"OpenAI-Organization", "OpenAI-Project", "OpenAI-Beta", "OpenAI-Safety-Identifier", "Anthropic-Version", "Anthropic-Beta", //nolint:misspell // so they write it
		"Anthropic-Dangerous-Direct-Browser-Access", "X-Api-Key", "Api-Key", "Authorization", "Proxy-Authorization",
		"Cookie", "Idempotency-Key", "X-Stainless-Lang", "X-Client-Request-Id", "X-Forwarded-For", "Forwarded", "Referer", "User-Agent",
		"Accept", "Accept-Encoding", "Content-Type", "Traceparent", "Helicone-Auth", "X-Goog-User-Project", "HTTP-Referer", "X-Title",
	} {
		headers = append(headers, name+": "+theirs)
	}
	for path, body := range bodies {
		for _, kind := range []catalog.Kind{catalog.Compatible, catalog.OpenAI, catalog.Anthropic} {
			t.Run(path+" at "+string(kind), func(t *testing.T) {
				provider := newDouble(t, well)
				b := newBench(t, provider.URL)
				p := b.catalog.Providers["p"]
				p.Kind = kind
				b.catalog.Providers["p"] = p
				if a := b.serve().ask("POST", path, body, headers...); a.status != 200 {
					t.Fatal(a.body)
				}
				var passed []string
				for name, values := range provider.header[0] {
					if slices.Contains(values, theirs) {
						passed = append(passed, name)
					}
				}
				slices.Sort(passed)
				if want := []string{"Anthropic-Beta", "Anthropic-Version", "Openai-Beta"}; !slices.Equal(passed, want) {
					t.Errorf("the provider gets %v of the caller, not %v", passed, want)
				}
			})
		}
	}
}

func TestOnlyNamedFieldsOfABodyAreChanged(t *testing.T) {
	for name, c := range map[string]struct {
		kind             catalog.Kind
		path, body, want string
	}{
		"all else keeps its bytes": {
			catalog.Compatible, "/chat/completions",
			"{ \"x\" : 1.0,\n\t\"mod\\u0065l\" : \"m\" , \"messages\":[ { \"content\":\"\\u00e9\" } ],\"max_tokens\":50 } ",
			"{ \"x\" : 1.0,\n\t\"mod\\u0065l\" : \"up\" , \"messages\":[ { \"content\":\"\\u00e9\" } ],\"max_tokens\":50 } ",
		},
		"a cap is lowered":  {catalog.Compatible, "/chat/completions", `{"model":"m","max_tokens":101,"max_completion_tokens":null}`, `{"model":"up","max_tokens":100,"max_completion_tokens":null}`},
		"two caps":          {catalog.Compatible, "/chat/completions", `{"max_completion_tokens":500,"max_tokens":7,"model":"m"}`, `{"max_completion_tokens":100,"max_tokens":7,"model":"up"}`},
		"a cap is added":    {catalog.Compatible, "/chat/completions", `{"model":"m"}`, `{"max_tokens":100,"model":"up"}`},
		"an old cap":        {catalog.OpenAI, "/chat/completions", `{"n":1,"max_tokens" : 7,"model":"m"}`, `{"n":1,"max_completion_tokens" : 7,"model":"up"}`},
		"an old high cap":   {catalog.OpenAI, "/chat/completions", `{"model":"m","user":"x","max\u005ftokens":700}`, `{"model":"up","user":"x","max_completion_tokens":100}`},
		"an old and a new":  {catalog.OpenAI, "/chat/completions", `{"model":"m","max_tokens":7,"max_completion_tokens":9}`, `{"model":"up","max_tokens":null,"max_completion_tokens":9}`},
		"an old, and null":  {catalog.OpenAI, "/chat/completions", `{"model":"m","max_tokens":7,"max_completion_tokens":null}`, `{"model":"up","max_tokens":null,"max_completion_tokens":7}`},
		"a vendor's cap":    {catalog.OpenAI, "/chat/completions", `{"model":"m"}`, `{"max_completion_tokens":100,"model":"up"}`},
		"nothing is stored": {catalog.OpenAI, "/responses", `{"model":"m","store":true,"max_output_tokens":9}`, `{"model":"up","store":false,"max_output_tokens":9}`},
		"not said, either":  {catalog.OpenAI, "/responses", `{"model":"m","input":"x"}`, `{"max_output_tokens":100,"store":false,"model":"up","input":"x"}`},
		"a null cap":        {catalog.Anthropic, "/messages", `{"model":"m","max_tokens":null}`, `{"model":"up","max_tokens":100}`},
		"a stream's usage":  {catalog.OpenAI, "/chat/completions", `{"model":"m","stream":true,"stream_options":{"x":1},"max_tokens":1}`, `{"model":"up","stream":true,"stream_options":{"x":1,"include_usage":true},"max_completion_tokens":1}`},
		"no options yet":    {catalog.OpenAI, "/chat/completions", `{"model":"m","stream":true,"max_tokens":1}`, `{"stream_options":{"include_usage":true},"model":"up","stream":true,"max_completion_tokens":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			provider := newDouble(t, well)
			b := newBench(t, provider.URL)
			p := b.catalog.Providers["p"]
			p.Kind = c.kind
			b.catalog.Providers["p"] = p
			b.serve().ask("POST", c.path, c.body)
			if got := provider.requests(); len(got) != 1 || got[0] != c.want {
				t.Errorf("the provider got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheCountsOfAStreamAreTakenOutAgain(t *testing.T) {
	ok := events["/chat/completions"]
	for name, c := range map[string]struct{ options, want string }{
		"nobody asked for them": {"", ok[0] + ok[1] + ok[3]},
		"the run did":           {`,"stream_options":{"include_usage":true}`, strings.Join(ok, "")},
		"the run did not":       {`,"stream_options":{"include_usage":false}`, ok[0] + ok[1] + ok[3]},
	} {
		t.Run(name, func(t *testing.T) {
			provider := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) { stream(w, ok...) })
			b := newBench(t, provider.URL).serve()
			a := b.ask("POST", "/chat/completions", `{"model":"m","messages":[],"stream":true`+c.options+`}`)
			if a.body != c.want || !strings.Contains(provider.requests()[0], `"include_usage":true`) || b.told.last(t, 1).Spent.Amount.Tokens != 10 {
				t.Errorf("%s %v", a.body, provider.requests())
			}
		})
	}
}

func TestWhatIsRefusedBeforeAnythingGoesOut(t *testing.T) {
	chatPath := "/v1/chat/completions"
	for name, c := range map[string]struct {
		path, body string
		status     int
		rule       string
		set        func(*bench)
	}{
		"no JSON":                {chatPath, `{"model":`, 400, RuleRequest, nil},
		"no object":              {chatPath, ` []`, 400, RuleRequest, nil},
		"no model":               {chatPath, `{"messages":[]}`, 400, RuleModel, nil},
		"a model that is none":   {chatPath, `{"model":7}`, 400, RuleModel, nil},
		"an unknown model":       {chatPath, `{"model":"n"}`, 404, RuleModel, nil},
		"a model of others":      {chatPath, `{"model":"m"}`, 403, RuleModel, func(b *bench) { b.session.Models = nil }},
		"a foreign dialect":      {"/v1/messages", bodies["/messages"], 400, RuleDialect, func(b *bench) { b.speak(catalog.Embeddings) }},
		"no bound":               {chatPath, `{"model":"m","max_tokens":0}`, 400, RuleRequest, nil},
		"a bound below zero":     {chatPath, `{"model":"m","max_tokens":-1}`, 400, RuleRequest, nil},
		"a bound as a text":      {chatPath, `{"model":"m","max_tokens":"9"}`, 400, RuleRequest, nil},
		"a bound with exponent":  {chatPath, `{"model":"m","max_tokens":1e9}`, 400, RuleRequest, nil},
		"too many answers":       {chatPath, `{"model":"m","n":129}`, 400, RuleRequest, nil},
		"a stream of a kind":     {chatPath, `{"model":"m","stream":"yes"}`, 400, RuleRequest, nil},
		"tokens":                 {chatPath, bodies["/chat/completions"], 402, RuleTokens, func(b *bench) { b.session.Ledger = newBooks(ledger.Amount{Tokens: 100}) }},
		"cost":                   {chatPath, bodies["/chat/completions"], 402, RuleCost, func(b *bench) { b.session.Ledger = newBooks(ledger.Amount{Cost: 1000}) }},
		"many answers cost more": {chatPath, `{"model":"m","n":5}`, 402, RuleTokens, func(b *bench) { b.session.Ledger = newBooks(ledger.Amount{Tokens: 500}) }},
		"no price":               {chatPath, bodies["/chat/completions"], 402, RulePrice, func(b *bench) { b.session.Limited = func() (bool, bool) { return true, true }; b.noPrice() }},
		"no time":                {chatPath, bodies["/chat/completions"], 504, RuleDeadline, func(b *bench) { b.session.Deadline = time.Now().Add(-time.Second) }},
		"no key":                 {chatPath, bodies["/chat/completions"], 502, RuleKey, func(b *bench) { b.opts.Key = secrets.Files{}.Read }},
		"a key with a line end":  {chatPath, bodies["/chat/completions"], 502, RuleKey, func(b *bench) { b.opts.Key = func(string) (secrets.Secret, error) { return canary + "\r\nX: y", nil } }},
		"a large body":           {chatPath, `{"model":"m","x":"` + strings.Repeat("x", maxBody) + `"}`, 413, RuleSize, nil},
		"nothing there":          {"/v1/completions", `{}`, 404, RuleRequest, nil},
		"a ledger of ours broke": {chatPath, bodies["/chat/completions"], 500, RuleInternal, func(b *bench) { b.session.Ledger = brokenLedger{} }},
	} {
		t.Run(name, func(t *testing.T) {
			provider := newDouble(t, well)
			b := newBench(t, provider.URL)
			if c.set != nil {
				c.set(b)
			}
			b.serve()
			a := b.ask("POST", c.path, c.body)
			if p := a.problem(t, c.status, c.rule); (p.Type == "error") != strings.Contains(c.path, "messages") {
				t.Errorf("the envelope is of another dialect: %s", a.body)
			}
			if len(provider.requests()) != 0 || strings.Contains(a.body, canary) {
				t.Errorf("%v %s", provider.requests(), a.body)
			}
		})
	}
}

type brokenLedger struct{}

func (brokenLedger) Reserve(context.Context, Call, ledger.Amount) (Hold, error) {
	return nil, errors.New("a disk is full")
}

func (b *bench) speak(d ...catalog.Dialect) {
	p := b.catalog.Providers["p"]
	p.Dialects = d
	b.catalog.Providers["p"] = p
}

func (b *bench) noPrice() {
	m := b.catalog.Models["m"]
	m.Price = nil
	b.catalog.Models["m"] = m
}

func TestOtherMethodsAndBodiesAreRefused(t *testing.T) {
	b := newBench(t, "").serve()
	b.ask("GET", "/v1/messages", "").problem(t, 405, RuleRequest)
	b.ask("DELETE", "/v1/models/m", "").problem(t, 405, RuleRequest)
	b.ask("POST", "/v1/messages", "x", "Content-Encoding: gzip").problem(t, 400, RuleRequest)
}

func TestModelsAreThoseThatTheRunMayAsk(t *testing.T) {
	b := newBench(t, "")
	b.catalog.Models["other"] = b.catalog.Models["m"]
	seeing := b.catalog.Models["m"]
	seeing.Images, seeing.Context = new(true), 128_000
	b.catalog.Models["m"] = seeing
	b.session.Models = []string{"m", "gone"}
	b.serve()
	for _, prefix := range []string{"", "/v1"} {
		var list struct {
			Data []struct {
				ID  string
				AOD struct {
					Dialects  []string
					MaxOutput int64 `json:"max_output"`
					Images    bool
					Context   int64
					Price     map[string]float64
				}
			}
		}
		a := b.ask("GET", prefix+"/models", "")
		must(t, json.Unmarshal([]byte(a.body), &list))
		if len(list.Data) != 1 || list.Data[0].ID != "m" || len(list.Data[0].AOD.Dialects) != 4 || list.Data[0].AOD.MaxOutput != 100 || list.Data[0].AOD.Price["cached"] != 0.5 || !list.Data[0].AOD.Images || list.Data[0].AOD.Context != 128_000 {
			t.Errorf("%s", a.body)
		}
		if a := b.ask("GET", prefix+"/models/m", ""); a.status != 200 || !strings.HasPrefix(a.body, `{"aod":`) {
			t.Errorf("%s", a.body)
		}
		b.ask("GET", prefix+"/models/other", "").problem(t, 403, RuleModel)
		b.ask("GET", prefix+"/models/nothing", "").problem(t, 404, RuleModel)
	}
}

func TestAnotherProviderAnswersWhereOneDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		asked  int
	}{
		"its key is bad":      {401, `{}`, 1},
		"it forbids":          {403, `{}`, 1},
		"its quota is spent":  {429, `{"error":{"code":"insufficient_quota"}}`, 1},
		"it is down":          {500, ``, 3},
		"it has too much":     {429, ``, 3},
		"it leads away":       {302, ``, 1},
		"it wants to be paid": {402, ``, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bad := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			good := newDouble(t, well)
			b := newBench(t, bad.URL)
			b.catalog.Providers["q"] = catalog.Provider{Kind: catalog.Compatible, BaseURL: good.URL, AnyField: true, Dialects: catalog.Dialects()}
			b.catalog.Providers["dumb"] = catalog.Provider{Kind: catalog.Compatible, BaseURL: "http://127.0.0.1:1", AnyField: true}
			m := b.catalog.Models["m"]
			m.Use = []catalog.Use{{Provider: "dumb", Model: "x"}, {Provider: "p", Model: "up"}, {Provider: "q", Model: "elsewhere"}}
			b.catalog.Models["m"] = m
			kept := newBooks(ledger.Amount{})
			b.session.Ledger = kept
			a := b.serve().ask("POST", "/chat/completions", bodies["/chat/completions"])
			e := b.told.last(t, 1)
			if a.status != 200 || len(bad.requests()) != c.asked || e.Call.Provider != "q" || e.Call.Upstream != "elsewhere" || e.Attempts != c.asked+1 {
				t.Errorf("%d %s, asked %d times: %+v", a.status, a.body, len(bad.requests()), e)
			}
			if spent, reserved := kept.spent(); spent.Tokens != 10 || reserved.Tokens != 0 || good.header[0].Get("Authorization") != "" {
				t.Errorf("%+v %+v %v", spent, reserved, good.header)
			}
		})
	}
}

func TestAProviderThatCannotBeReached(t *testing.T) {
	b := newBench(t, "http://127.0.0.1:1")
	kept := newBooks(ledger.Amount{})
	b.session.Ledger = kept
	b.serve().ask("POST", "/chat/completions", bodies["/chat/completions"]).problem(t, 502, RuleProvider)
	if spent, reserved := kept.spent(); spent.Tokens+reserved.Tokens != 0 || b.told.last(t, 1).Attempts != 3 {
		t.Errorf("%+v %+v", spent, reserved)
	}
}

func TestWhatAProviderSaysOfARequestIsPassedOn(t *testing.T) {
	for _, status := range []int{400, 404, 413, 422} {
		const says = `{"error": {"message":"too long", "code":"context_length_exceeded"}}`
		provider := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, says)
		})
		b := newBench(t, provider.URL).serve()
		a := b.ask("POST", "/chat/completions", bodies["/chat/completions"])
		if a.status != status || a.body != says || a.header.Get("X-Should-Retry") != "false" || len(provider.requests()) != 1 {
			t.Errorf("%d %s %v", a.status, a.body, a.header)
		}
	}
}

func TestAnAnswerThatQuotesTheKeyIsNotShown(t *testing.T) {
	for _, form := range []string{canary, strings.ReplaceAll(canary, "-", `\u002D`), strings.ReplaceAll(canary, "e", `\\u0065`), strings.ReplaceAll(canary, "-", "%2d")} {
		provider := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) { answering(w, `{"x":"`+form+`"}`) })
		b := newBench(t, provider.URL).serve()
		a := b.ask("POST", "/chat/completions", bodies["/chat/completions"])
		if a.problem(t, 502, RuleKey); strings.Contains(a.body, form) {
			t.Error(a.body)
		}
	}
}

func TestAPlainAnswerThatIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		rule string
	}{"half": {`{"usage":`, RuleProvider}, "giant": {`"` + strings.Repeat("x", maxBody) + `"`, RuleProvider}} {
		t.Run(name, func(t *testing.T) {
			provider := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) { answering(w, c.body) })
			b := newBench(t, provider.URL).serve()
			b.ask("POST", "/chat/completions", bodies["/chat/completions"]).problem(t, 502, c.rule)
			testkit.Eventually(t, "all memory is given back", func() bool { return b.memory.Held() == 0 })
		})
	}
}

func TestWhatThereIsNoMemoryForIsRefusedForNow(t *testing.T) {
	large := `{"x":"` + strings.Repeat("x", 3<<20) + `"}`
	provider := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) { answering(w, large) })
	for name, body := range map[string]string{"a request": `{"model":"m","x":"` + strings.Repeat("x", 5<<20) + `"}`, "an answer": bodies["/chat/completions"]} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, provider.URL)
			b.memory = bytegate.New(8 << 20)
			a := b.serve().ask("POST", "/chat/completions", body)
			if a.status != 503 || a.header.Get("Retry-After") == "" || a.header.Get("X-Should-Retry") != "true" || !strings.Contains(a.body, RuleBusy) {
				t.Errorf("%d %v %s", a.status, a.header, a.body)
			}
			testkit.Eventually(t, "all memory is given back", func() bool { return b.memory.Held() == 0 })
		})
	}
}

func TestALargeAnswerIsPassedOn(t *testing.T) {
	large := `{"choices":[{}],"x":"` + strings.Repeat("x", 3<<20) + `","usage":{"prompt_tokens":7,"completion_tokens":3}}`
	provider := newDouble(t, func(_ int, w http.ResponseWriter, _ *http.Request) { answering(w, large) })
	b := newBench(t, provider.URL).serve()
	if a := b.ask("POST", "/chat/completions", bodies["/chat/completions"]); a.body != large || b.told.last(t, 1).Spent.Amount.Tokens != 10 {
		t.Errorf("%d bytes", len(a.body))
	}
}

// slot is a run's, as the queue of an orchestrator has it.
type slot struct {
	mu    sync.Mutex
	lent  int
	log   []string
	taken bool // others don't give it back
}

func (s *slot) Await(_ context.Context, wait func()) {
	s.note(1, "lent")
	wait()
	s.note(-1, "back")
}

func (s *slot) Regain(context.Context) bool {
	s.note(0, "regained")
	return !s.taken
}

func (s *slot) note(n int, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent += n
	s.log = append(s.log, what)
}

func (s *slot) isLent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lent > 0
}

func TestARunThatWaitsLendsItsSlot(t *testing.T) {
	s := &slot{}
	ok := events["/chat/completions"]
	provider := newDouble(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if !s.isLent() {
			t.Error("it waits with its slot")
		}
		stream(w, ok...)
	})
	b := newBench(t, provider.URL)
	b.session.Turn = s
	b.serve()
	if a := b.ask("POST", "/chat/completions", streaming(bodies["/chat/completions"])); !strings.Contains(a.body, "[DONE]") {
		t.Error(a.body)
	}
	if got := strings.Join(s.log, " "); got != "lent back regained" {
		t.Error(got)
	}
	s.taken = true
	r, err := http.NewRequestWithContext(t.Context(), "POST", b.server.URL+"/chat/completions", strings.NewReader(bodies["/chat/completions"]))
	must(t, err)
	if answer, err := http.DefaultClient.Do(r); err == nil {
		defer answer.Body.Close()
		if raw, _ := io.ReadAll(answer.Body); strings.Contains(string(raw), "[DONE]") {
			t.Error("it saw the end without a slot")
		}
	}
}

func TestAReaderThatHangsUpPaysInFull(t *testing.T) {
	ok := events["/chat/completions"]
	gone := make(chan struct{})
	provider := newDouble(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		stream(w, ok[0], ok[1])
		hang(r)
		close(gone)
	})
	kept := newBooks(ledger.Amount{})
	b := newBench(t, provider.URL)
	b.session.Ledger = kept
	b.serve()
	ctx, cancel := context.WithCancel(t.Context())
	body := streaming(bodies["/chat/completions"])
	r, err := http.NewRequestWithContext(ctx, "POST", b.server.URL+"/chat/completions", strings.NewReader(body))
	must(t, err)
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	_, err = io.ReadFull(answer.Body, make([]byte, len(ok[0]+ok[1])))
	must(t, err)
	cancel()
	answer.Body.Close()
	<-gone // the provider is told at once
	e := b.told.last(t, 1)
	if spent, reserved := kept.spent(); reserved.Tokens != 0 || spent.Tokens != int64(len(body))+added+100 || !e.Spent.Estimated {
		t.Errorf("%+v %+v %+v", spent, reserved, e)
	}
}

func TestTheEndOfARunEndsItsCalls(t *testing.T) {
	provider := newDouble(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		stream(w, events["/chat/completions"][0])
		hang(r)
	})
	b := newBench(t, provider.URL)
	b.session.Deadline = time.Now().Add(300 * time.Millisecond)
	a := b.serve().ask("POST", "/chat/completions", streaming(bodies["/chat/completions"]))
	if !strings.Contains(a.body, `"rule":"deadline"`) {
		t.Error(a.body)
	}
	b.ask("POST", "/chat/completions", bodies["/chat/completions"]).problem(t, 504, RuleDeadline)
}

func TestAScriptThatCannotBeRead(t *testing.T) {
	b := newBench(t, "")
	b.catalog.Providers["s"] = catalog.Provider{Kind: catalog.Script, Answers: t.TempDir() + "/gone"}
	if _, err := New(b.catalog, b.opts); !fault.Is(err, fault.Input) {
		t.Error(err)
	}
}
