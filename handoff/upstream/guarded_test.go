package upstream

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/secrets"
)

func TestAKeyThatComesBackEscapedIsFound(t *testing.T) {
	const key = "sk/hunter-2+hunter-2"
	for name, form := range map[string]string{
		"a slash":  `sk\/hunter-2+hunter-2`,
		"a number": `sk/hunter\u002D2\u002bhunter\u002d2`,
		"mixed":    `\u0073\u006b\/hunter-2+hunter\u002d2`,
		"a string": `sk\\/hunter\\u002d2+hunter-2`,
		"query":    `sk%2fhunter-2%2Bhunter-2`,
		"HTML":     `sk&#x2F;hunter-2&#43;hunter-2`,
	} {
		b := newBench(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Echo", "it was "+form)
			w.Header().Set("Trailer", "X-End")
			_, _ = io.WriteString(w, `{"you":"`)
			for _, part := range []string{form[:5], form[5:11], form[11:], `"}`} {
				w.(http.Flusher).Flush()
				_, _ = io.WriteString(w, part)
			}
			w.Header().Set("X-End", form)
		}, func(_ *Upstream, o *Options) { o.Key = func(string) (secrets.Secret, error) { return key, nil } })
		response := b.do("GET", "/upstream/svc", nil, nil)
		raw, err := io.ReadAll(response.Body)
		if err == nil || string(raw) != `{"you":"` || response.Header.Get("X-Echo") != "" || response.Trailer.Get("X-End") != "" {
			t.Errorf("%s: %q, %v, %v, %v", name, raw, err, response.Header, response.Trailer)
		}
		if e := b.exchange(); e.Rule != RuleKey {
			t.Errorf("%+v", e)
		}
	}
}

// Trailers go on to nobody, so that none can hold the key.
func TestNoTrailerGoesOn(t *testing.T) {
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-End")
		_, _ = io.WriteString(w, "fine")
		w.Header().Set("X-End", r.Header.Get("Authorization"))
		w.Header().Set(http.TrailerPrefix+"X-Late", r.Header.Get("Authorization"))
	}, nil)
	response := b.do("GET", "/upstream/svc", nil, nil)
	if got := read(t, response.Body); got != "fine" || len(response.Trailer) > 0 {
		t.Errorf("%q, %v", got, response.Trailer)
	}
}

func TestAnEncodedAnswerIsRefusedWhereThereIsAKey(t *testing.T) {
	coding := ""
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", coding)
		if coding != "gzip" {
			_, _ = io.WriteString(w, "plain")
			return
		}
		zipped := gzip.NewWriter(w)
		_, _ = io.WriteString(zipped, r.Header.Get("Authorization"))
		_ = zipped.Close()
	}
	for _, coding = range []string{"gzip", "br", "identity, gzip"} {
		b := newBench(t, answer, nil)
		p := b.problem(b.do("GET", "/upstream/svc", http.Header{"Accept-Encoding": {"gzip"}, "Accept_encoding": {"gzip"}}, nil), 502, RuleEncoding)
		if got := b.last().Header; got.Get("Accept-Encoding") != "identity" || len(got["Accept_encoding"]) > 0 || !strings.Contains(p.Detail, "upstream svc") {
			t.Errorf("%v, %+v", got, p)
		}
		if e := b.exchange(); e.Rule != RuleEncoding || e.BytesIn != 0 {
			t.Errorf("%+v", e)
		}
	}
	coding = "identity"
	if response := newBench(t, answer, nil).do("GET", "/upstream/svc", nil, nil); response.StatusCode != 200 || read(t, response.Body) != "plain" {
		t.Errorf("identity: %d", response.StatusCode)
	}
	coding = "br"
	open := newBench(t, answer, func(u *Upstream, _ *Options) { u.Secret = "" })
	if response := open.do("GET", "/upstream/svc", nil, nil); response.StatusCode != 200 || response.Header.Get("Content-Encoding") != "br" {
		t.Errorf("without a key: %d, %v", response.StatusCode, response.Header)
	}
}
