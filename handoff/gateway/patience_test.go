package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
)

// signs are an answer that comes in parts, each after a time.
type signs struct {
	done  <-chan struct{} // nobody reads on
	every time.Duration
	parts []string
}

func (s *signs) Read(p []byte) (int, error) {
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	wait := time.After(s.every)
	if s.parts[0] == hangs {
		wait = nil
	}
	select {
	case <-wait:
	case <-s.done:
		return 0, context.Canceled
	}
	n := copy(p, s.parts[0])
	s.parts = s.parts[1:]
	return n, nil
}

const hangs = "" // a part that never comes

func (s *signs) Close() error { return nil }

// saying is how a provider answers; of the media "" nothing comes.
type saying func(ctx context.Context) (media string, body io.ReadCloser)

func says(media string, every time.Duration, parts ...string) saying {
	return func(ctx context.Context) (string, io.ReadCloser) { return media, &signs{ctx.Done(), every, parts} }
}

// twoProviders are p, which answers as it is told, and q, which answers well at once.
type twoProviders struct{ first saying }

func (p twoProviders) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	media := "application/json"
	if strings.Contains(string(body), `"stream":true`) {
		media = "text/event-stream"
	}
	good := map[string]string{"application/json": plainAnswer, "text/event-stream": strings.Join(events["/chat/completions"], "")}
	answer := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {media}}}
	if r.URL.Host != "p.invalid" {
		answer.Body = io.NopCloser(strings.NewReader(good[media]))
		return answer, nil
	}
	said, from := p.first(r.Context())
	if said == "" {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	answer.Header.Set("Content-Type", said)
	answer.Body = from
	return answer, nil
}

// askTwo asks p, and q where p has no answer, in a bubble of time. It returns who answers, and after which time.
func askTwo(t *testing.T, first saying, body string, set func(*bench)) (by string, after time.Duration) {
	t.Helper()
	b := newBench(t, "https://p.invalid")
	b.opts.FirstByte, b.opts.Silence = 2*time.Minute, time.Minute
	b.opts.Transport = twoProviders{first}
	p, m := b.catalog.Providers["p"], b.catalog.Models["m"]
	p.BaseURL = "https://q.invalid"
	b.catalog.Providers["q"], m.Use = p, append(m.Use, catalog.Use{Provider: "q", Model: "other"})
	b.catalog.Models["m"] = m
	set(b)
	gw, err := New(b.catalog, b.opts)
	must(t, err)
	w, began := httptest.NewRecorder(), time.Now()
	b.counted(gw.Handler(b.session)).ServeHTTP(w, httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body)))
	told := b.told.all[0]
	if w.Code != 200 || told.Rule != "" {
		t.Fatalf("%d %s by %q (%s)", w.Code, w.Body, told.Call.Provider, told.Rule)
	}
	return told.Call.Provider, time.Since(began).Round(time.Second)
}

// The times of a model go before those of its provider, and those before the usual ones.
func TestTimesByProviderAndModel(t *testing.T) {
	t.Parallel()
	forEver := says("application/json", 4*time.Second, slices.Repeat([]string{" "}, 100)...)
	silent, hanging := says("", 0), says("application/json", 0, hangs)
	for name, c := range map[string]struct {
		first           saying
		provider, model catalog.Timeouts
		after           time.Duration // q is asked
	}{
		"the usual first byte":     {silent, catalog.Timeouts{}, catalog.Timeouts{}, 2 * time.Minute},
		"the provider's":           {silent, catalog.Timeouts{FirstByte: 20 * time.Second}, catalog.Timeouts{}, 20 * time.Second},
		"the model's":              {silent, catalog.Timeouts{FirstByte: 20 * time.Second}, catalog.Timeouts{FirstByte: 30 * time.Second}, 30 * time.Second},
		"the usual silence":        {hanging, catalog.Timeouts{}, catalog.Timeouts{}, time.Minute},
		"the provider's silence":   {hanging, catalog.Timeouts{Silence: 5 * time.Second}, catalog.Timeouts{}, 5 * time.Second},
		"the model's silence":      {hanging, catalog.Timeouts{Silence: 5 * time.Second}, catalog.Timeouts{Silence: 7 * time.Second}, 7 * time.Second},
		"the provider's whole":     {forEver, catalog.Timeouts{Whole: 15 * time.Second}, catalog.Timeouts{}, 15 * time.Second},
		"the model's whole":        {forEver, catalog.Timeouts{Whole: 15 * time.Second}, catalog.Timeouts{Whole: 17 * time.Second}, 17 * time.Second},
		"the model's, of each one": {forEver, catalog.Timeouts{Silence: 5 * time.Second}, catalog.Timeouts{Whole: 9 * time.Second}, 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				by, after := askTwo(t, c.first, bodies["/chat/completions"], func(b *bench) {
					p, m := b.catalog.Providers["p"], b.catalog.Models["m"]
					p.Timeouts, m.Timeouts = c.provider, c.model
					b.catalog.Providers["p"], b.catalog.Models["m"] = p, m
				})
				if by != "q" || after != c.after {
					t.Errorf("%q answers after %v, want q after %v", by, after, c.after)
				}
			})
		})
	}
}

// A provider that says anything is at work, and is waited for, also beyond its share of the run's time. One that is
// silent is not.
func TestAProviderThatShowsThatItWorksIsWaitedFor(t *testing.T) {
	t.Parallel()
	whole := strings.Join(events["/chat/completions"], "")
	comment := ": at work\n\n"
	for name, c := range map[string]struct {
		stream bool
		first  saying
		by     string
		after  time.Duration
	}{
		"nothing":            {false, says("", 0), "q", 30 * time.Second},
		"headers alone":      {false, says("application/json", 0, hangs), "q", 30 * time.Second},
		"spaces, in time":    {false, says("application/json", 8*time.Second, " ", " ", " ", " ", plainAnswer), "p", 40 * time.Second},
		"comments, in time":  {true, says("text/event-stream", 8*time.Second, comment, comment, comment, comment, whole), "p", 40 * time.Second},
		"comments, then not": {true, says("text/event-stream", 20*time.Second, comment, hangs), "q", 40 * time.Second},
		"one word, then not": {true, says("text/event-stream", 25*time.Second, events["/chat/completions"][1], whole), "p", 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				body := bodies["/chat/completions"]
				if c.stream {
					body = streaming(body)
				}
				by, after := askTwo(t, c.first, body, func(b *bench) { b.session.Deadline = time.Now().Add(time.Minute) })
				if by != c.by || after != c.after {
					t.Errorf("%q answers after %v, want %q after %v", by, after, c.by, c.after)
				}
			})
		})
	}
}
