package a2apeer_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
)

// hostile is an agent that answers by hand.
type hostile struct {
	*httptest.Server
	card  string // $URL is its address
	serve http.HandlerFunc
	asked atomic.Int32
}

func newHostile(t *testing.T, serve http.HandlerFunc) *hostile {
	t.Helper()
	h := &hostile{serve: serve, card: `{"name":"h","capabilities":{"streaming":true},"supportedInterfaces":[{"url":"$URL/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		if r.URL.Path == "/.well-known/agent-card.json" {
			_, _ = io.WriteString(w, strings.ReplaceAll(h.card, "$URL", h.URL))
			return
		}
		h.serve(w, r)
	}))
	t.Cleanup(h.Close)
	t.Cleanup(h.CloseClientConnections)
	return h
}

// says answers with the result of a call, in which there is no id.
func says(result string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"x","result":`+result+`}`)
	}
}

// streams answers with events, each the result of a call.
func streams(results ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, result := range results {
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":%s}\n\n", result)
		}
	}
}

// without end writes a text until its reader has gone.
func withoutEnd(w http.ResponseWriter, text string) {
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

const task = `{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}`

func violation(t *testing.T, err error, rule string) {
	t.Helper()
	var broken *a2apeer.Violation
	if !errors.As(err, &broken) || broken.Rule != rule || !fault.Is(err, fault.Unsupported) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v, want one against %s", err, rule)
	}
}

func TestAHostileCardIsBoundedAndTyped(t *testing.T) {
	other := newHostile(t, says("{}"))
	for name, c := range map[string]struct{ card, rule string }{
		"larger than is taken":     {strings.Repeat(" ", a2apeer.MaxCard+1), a2apeer.RuleSize},
		"no JSON":                  {`{"name":`, a2apeer.RuleAnswer},
		"no object":                {`[]`, a2apeer.RuleCard},
		"members of other types":   {`{"supportedInterfaces":"secret"}`, a2apeer.RuleCard},
		"nothing":                  {``, a2apeer.RuleCard},
		"deep":                     {strings.Repeat("[", 1000) + strings.Repeat("]", 1000), a2apeer.RuleAnswer},
		"many values":              {`{"skills":[` + strings.Repeat("0,", 300_000) + `0]}`, a2apeer.RuleAnswer},
		"no interface":             {`{}`, a2apeer.RuleInterfaces},
		"none that is spoken":      {`{"supportedInterfaces":[{"url":"$URL","protocolBinding":"GRPC","protocolVersion":"1.0"},{"url":"$URL","protocolBinding":"JSONRPC","protocolVersion":"99.0"}]}`, a2apeer.RuleInterfaces},
		"many interfaces":          {`{"supportedInterfaces":[` + strings.Repeat(`{"url":"$URL"},`, 100) + `{}]}`, a2apeer.RuleInterfaces},
		"a foreign origin":         {`{"supportedInterfaces":[{"url":"` + other.URL + `","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, a2apeer.RuleOrigin},
		"a foreign origin, in 0.3": {`{"url":"` + other.URL + `","preferredTransport":"JSONRPC","protocolVersion":"0.3.0"}`, a2apeer.RuleOrigin},
		"a user in the address":    {`{"supportedInterfaces":[{"url":"http://u:secret@$URL","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, a2apeer.RuleOrigin},
		"an extension":             {`{"capabilities":{"extensions":[{"uri":"u","required":true}]},"supportedInterfaces":[{"url":"$URL","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, a2apeer.RuleInterfaces},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t, says("{}"))
			h.card = c.card
			client, err := a2apeer.New(a2apeer.Options{URL: h.URL, Token: "secret"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Card(t.Context())
			violation(t, err, c.rule)
		})
	}
	if other.asked.Load() > 0 {
		t.Error("another origin was asked")
	}
	t.Run("endless", func(t *testing.T) {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { withoutEnd(w, `{"name":"secret`) }))
		t.Cleanup(h.Close)
		client, err := a2apeer.New(a2apeer.Options{URL: h.URL})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Card(t.Context())
		violation(t, err, a2apeer.RuleSize)
	})
	t.Run("elsewhere, by a redirect", func(t *testing.T) {
		h := httptest.NewServer(http.RedirectHandler(other.URL+"/.well-known/agent-card.json", http.StatusTemporaryRedirect))
		t.Cleanup(h.Close)
		client, err := a2apeer.New(a2apeer.Options{URL: h.URL, Token: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		var refused *a2apeer.Refusal
		if _, err = client.Card(t.Context()); !errors.As(err, &refused) || refused.Status != http.StatusTemporaryRedirect || other.asked.Load() > 0 {
			t.Errorf("%v, %d requests elsewhere", err, other.asked.Load())
		}
	})
}

func TestAnOldCardIsRead(t *testing.T) {
	h := newHostile(t, says(`{}`))
	h.card = `{"name":"old","url":"$URL/a","protocolVersion":"0.3.0","additionalInterfaces":[{"url":"$URL/b","transport":"HTTP+JSON"},{"url":"http://127.0.0.1:1","transport":"HTTP+JSON"},{"url":"$URL/a","transport":""}]}`
	_, card := at(t, a2apeer.Options{URL: h.URL + "/.well-known/agent-card.json"})
	want := []a2apeer.Interface{{URL: h.URL + "/a", Binding: a2apeer.JSONRPC, Version: a2apeer.V03}, {URL: h.URL + "/b", Binding: a2apeer.HTTPJSON, Version: a2apeer.V03}}
	if fmt.Sprint(card.Interfaces) != fmt.Sprint(want) || card.Streams {
		t.Errorf("%+v", card)
	}
}

// artifacts is a task with one artifact more than n.
func artifacts(n int) string {
	return `{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[` + strings.Repeat(`{"artifactId":"a","parts":[]},`, n) + `{"artifactId":"a","parts":[]}]}`
}

func TestHostileAnswersAreBoundedAndTyped(t *testing.T) {
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		rule  string
	}{
		"no JSON":               {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret") }, a2apeer.RuleAnswer},
		"nothing":               {func(http.ResponseWriter, *http.Request) {}, a2apeer.RuleAnswer},
		"no result":             {says(`null`), a2apeer.RuleAnswer},
		"nulls":                 {says(`{"task":{"id":"t","status":{"state":null,"message":{"parts":[null]}},"artifacts":[null]}}`), a2apeer.RuleAnswer},
		"a part of no kind":     {says(`{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"},"artifacts":[{"parts":[{"secret":1}]}]}}`), a2apeer.RuleAnswer},
		"an unknown state":      {says(`{"task":{"id":"t","status":{"state":"TASK_STATE_SECRET"}}}`), a2apeer.RuleState},
		"no id":                 {says(`{"task":{"id":"","status":{"state":"TASK_STATE_WORKING"}}}`), a2apeer.RuleTask},
		"an id that leads on":   {says(`{"task":{"id":"../secret","status":{"state":"TASK_STATE_WORKING"}}}`), a2apeer.RuleTask},
		"a long id":             {says(`{"task":{"id":"` + strings.Repeat("t", 300) + `","status":{"state":"TASK_STATE_WORKING"}}}`), a2apeer.RuleTask},
		"100,000 artifacts":     {says(`{"task":` + artifacts(100_000) + `}`), a2apeer.RuleAnswer},
		"1,001 artifacts":       {says(`{"task":` + artifacts(1_000) + `}`), a2apeer.RuleSize},
		"10,001 parts":          {says(`{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"},"artifacts":[{"parts":[` + strings.Repeat(`{"text":""},`, 10_000) + `{"text":""}]}]}}`), a2apeer.RuleSize},
		"a long name of a file": {says(`{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"},"artifacts":[{"parts":[{"raw":"","filename":"` + strings.Repeat("n", 5000) + `"}]}]}}`), a2apeer.RuleSize},
		"an endless answer":     {func(w http.ResponseWriter, _ *http.Request) { withoutEnd(w, `{"secret":`) }, a2apeer.RuleSize},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t, c.serve)
			a, _ := at(t, a2apeer.Options{URL: h.URL, Token: "secret"})
			_, err := a.Send(t.Context(), message("x"))
			violation(t, err, c.rule)
			if !errors.Is(err, a2apeer.ErrUnheard) {
				t.Error("it may have the message")
			}
		})
	}
	t.Run("another task", func(t *testing.T) {
		h := newHostile(t, says(task))
		a, _ := at(t, a2apeer.Options{URL: h.URL})
		if _, err := a.Get(t.Context(), "t"); err != nil {
			t.Error(err)
		}
		_, err := a.Get(t.Context(), "u")
		violation(t, err, a2apeer.RuleTask)
		_, err = a.Cancel(t.Context(), "u")
		violation(t, err, a2apeer.RuleTask)
	})
}

func TestHostileStreamsAreBoundedAndTyped(t *testing.T) {
	a2apeer.Take(t, 2000, 16<<20, 2<<20)
	working := `{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`
	chunk := func(text string) string {
		return `{"artifactUpdate":{"taskId":"t","contextId":"c","append":true,"artifact":{"artifactId":"a","parts":[{"text":"` + text + `"}]}}}`
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		rule  string
	}{
		"another task": {streams(`{"task":`+task+`}`, strings.Replace(working, `"t"`, `"u"`, 1)), a2apeer.RuleTask},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: secret\n\n")
		}, a2apeer.RuleAnswer},
		"events of nothing": {streams(`{"task":`+task+`}`, `{}`), a2apeer.RuleAnswer},
		"null artifacts":    {streams(`{"artifactUpdate":{"taskId":"t","artifact":null}}`), a2apeer.RuleAnswer},
		"an endless line": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: ")
			withoutEnd(w, strings.Repeat("secret", 1000))
		}, a2apeer.RuleSize},
		"100,000 artifacts": {streams(`{"task":` + artifacts(100_000) + `}`), a2apeer.RuleAnswer},
		"comments without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			withoutEnd(w, strings.Repeat(": secret\n\n", 1000))
		}, a2apeer.RuleSize},
		"events without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			withoutEnd(w, strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"result\":"+working+"}\n\n", 100))
		}, a2apeer.RuleSize},
		"artifacts without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for n := 0; ; n++ {
				event := strings.Replace(chunk(""), `"a"`, fmt.Sprintf(`"a%d"`, n), 1)
				if _, err := io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"result\":"+event+"}\n\n"); err != nil {
					return
				}
			}
		}, a2apeer.RuleSize},
		"pieces without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			withoutEnd(w, "data: {\"jsonrpc\":\"2.0\",\"result\":"+chunk(strings.Repeat("x", 1<<20))+"}\n\n")
		}, a2apeer.RuleSize},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t, c.serve)
			a, _ := at(t, a2apeer.Options{URL: h.URL, Token: "secret"})
			_, err := a.Stream(t.Context(), message("x"), func(a2apeer.Task) error { return nil })
			violation(t, err, c.rule)
		})
	}
	t.Run("an error in the place of a stream", func(t *testing.T) {
		for _, status := range []int{200, 400} {
			h := newHostile(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\n\"error\":{\"code\":-32004,\"message\":\"no\"}}\n")
			})
			a, _ := at(t, a2apeer.Options{URL: h.URL})
			if _, err := a.Stream(t.Context(), message("x"), func(a2apeer.Task) error { return nil }); !a2apeer.IsReason(err, "UNSUPPORTED_OPERATION") {
				t.Errorf("with %d: %v", status, err)
			}
		}
	})
}

// Whatever an agent answers, no other place is asked, and none gets the token.
func TestARedirectLeadsTheTokenNowhere(t *testing.T) {
	other := newHostile(t, says(`{"task":`+task+`}`))
	for _, status := range []int{301, 302, 303, 307, 308} {
		h := newHostile(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/rpc", status) })
		a, _ := at(t, a2apeer.Options{URL: h.URL, Token: "secret"})
		_, sent := a.Send(t.Context(), message("x"))
		_, streamed := a.Stream(t.Context(), message("x"), func(a2apeer.Task) error { return nil })
		_, got := a.Get(t.Context(), "t")
		_, cancelled := a.Cancel(t.Context(), "t")
		_, followed := a.Subscribe(t.Context(), a2apeer.Task{ID: "t"}, func(a2apeer.Task) error { return nil })
		for method, err := range map[string]error{"send": sent, "stream": streamed, "get": got, "cancel": cancelled, "subscribe": followed} {
			var refused *a2apeer.Refusal
			if !errors.As(err, &refused) || refused.Status != status {
				t.Errorf("%s with %d: %v", method, status, err)
			}
		}
	}
	if n := other.asked.Load(); n > 0 {
		t.Errorf("another place was asked %d times", n)
	}
}

// Whatever names an address of another origin, no request leaves for it: each way is closed by itself.
func TestTheTokenGoesToTheAgentsOriginAlone(t *testing.T) {
	other := newHostile(t, says(`{"task":`+task+`}`))
	h := newHostile(t, says(`{"task":`+task+`}`))
	c, err := a2apeer.New(a2apeer.Options{URL: h.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{other.URL + "/rpc", strings.Replace(h.URL, "http:", "https:", 1), strings.Replace(h.URL, "127.0.0.1", "localhost", 1), "http://127.0.0.1/rpc"} {
		for _, form := range []a2apeer.Interface{
			{Binding: a2apeer.JSONRPC, Version: a2apeer.V10}, {Binding: a2apeer.HTTPJSON, Version: a2apeer.V10}, {Binding: a2apeer.JSONRPC, Version: a2apeer.V03}, {Binding: a2apeer.HTTPJSON, Version: a2apeer.V03},
		} {
			form.URL = address
			if _, _, err := c.Post(t.Context(), form, []byte("{}")); !fault.Is(err, fault.Unsupported) {
				t.Errorf("post to %s: %v", address, err)
			}
			_, err := c.At(form)
			violation(t, err, a2apeer.RuleOrigin)
		}
	}
	h.card = strings.ReplaceAll(h.card, "$URL", other.URL)
	_, err = c.Card(t.Context())
	violation(t, err, a2apeer.RuleOrigin)
	if n := other.asked.Load(); n > 0 {
		t.Errorf("another place was asked %d times", n)
	}
}

func TestRefusalsAreFaults(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		kind   fault.Kind
		reason string
	}{
		"no token":          {401, "", fault.Unauthorized, ""},
		"not for us":        {403, "secret", fault.Forbidden, ""},
		"busy":              {503, "", fault.Busy, ""},
		"busy, of JSON-RPC": {200, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"secret","data":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1s"}]}}`, fault.Busy, "SERVER_ERROR"},
		"so with 429":       {429, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"secret"}}`, fault.Busy, "SERVER_ERROR"},
		"input, with 400":   {400, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"secret"}}`, fault.Input, "INVALID_PARAMS"},
		"a gateway":         {502, "", fault.Unavailable, ""},
		"broken":            {500, "", fault.Internal, ""},
		"elsewhere":         {302, "", fault.Unsupported, ""},
		"input":             {200, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"secret"}}`, fault.Input, "INVALID_PARAMS"},
		"of its own":        {200, `{"jsonrpc":"2.0","error":{"code":-1,"message":"secret"}}`, fault.Internal, "INTERNAL_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			a, _ := at(t, a2apeer.Options{URL: h.URL, Token: "x"})
			_, err := a.Send(t.Context(), message("x"))
			var refused *a2apeer.Refusal
			if !errors.As(err, &refused) || !fault.Is(err, c.kind) || refused.Reason != c.reason || strings.Contains(err.Error(), "secret") || errors.Is(err, a2apeer.ErrUnheard) {
				t.Errorf("%v", err)
			}
			if strings.Contains(c.body, "jsonrpc") != (refused != nil && refused.Words == "secret") {
				t.Errorf("its words: %+v", refused)
			}
		})
	}
	t.Run("nobody is there", func(t *testing.T) {
		h := newHostile(t, says(""))
		a, _ := at(t, a2apeer.Options{URL: h.URL, Transport: &http.Transport{DisableKeepAlives: true}})
		h.Close()
		if _, err := a.Send(t.Context(), message("x")); !fault.Is(err, fault.Unavailable) || errors.Is(err, a2apeer.ErrUnheard) {
			t.Error(err)
		}
	})
	t.Run("an answer that breaks off", func(t *testing.T) {
		h := newHostile(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"jsonrpc":`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		a, _ := at(t, a2apeer.Options{URL: h.URL})
		if _, err := a.Send(t.Context(), message("x")); !fault.Is(err, fault.Unavailable) || !errors.Is(err, a2apeer.ErrUnheard) {
			t.Error(err)
		}
	})
}
