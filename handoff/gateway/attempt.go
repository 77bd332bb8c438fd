package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/live"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// attempt is one request to one provider.
type attempt struct {
	opts   *Options
	run    string
	route  route
	q      *request
	header http.Header // of the request
	server string      // the host that was asked; "" of a script
	left   int         // who may still be asked, with this one
	hears  Listener    // nil: nobody is told of the answer before the run is
	begun  bool        // it is the answer, and no other is asked
	heard  bool        // somebody hears it
}

func (a *attempt) name() string { return a.route.use.Provider }

// vendors are the addresses of the kinds that have one.
var vendors = map[catalog.Kind]string{
	catalog.OpenAI:    "https://api.openai.com/v1",
	catalog.Anthropic: "https://api.anthropic.com/v1",
}

// open sends the request to a provider, and reads what begins the answer.
func (a *attempt) open(ctx context.Context) (*upstream, *failure) {
	key, f := a.key()
	if f != nil {
		return nil, f
	}
	u := &upstream{
		key: key, meter: meter{dialect: a.q.dialect.name}, provider: a.name(), said: a.route.said,
	}
	if a.hears != nil {
		u.ear, u.heard = a.hears.Listen(), live.NewWords(a.q.dialect.name)
		a.heard = u.ear != nil
	}
	limits := a.route.timeouts.Over(catalog.Timeouts{FirstByte: a.opts.FirstByte, Silence: a.opts.Silence})
	request, watch := httpwire.WatchSilence(ctx, a.patience(ctx, limits.FirstByte))
	u.watch = watch
	tooLong := func() { watch.Stop(httpwire.ErrSilent) }
	if limits.Whole > 0 {
		u.whole = time.AfterFunc(limits.Whole, tooLong)
	}
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(request, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	response, err := a.send(traced, key, a.q.stream || u.ear != nil) //nolint:bodyclose // upstream.close does
	if err != nil {
		u.stop()
		f := a.lost(ctx, request, err)
		f.billed = sent.Load()
		return nil, f
	}
	patience := func() time.Duration { return a.patience(ctx, limits.Silence) }
	watch.Heard(patience())
	u.status, u.header, u.source = response.StatusCode, response.Header, response.Body
	u.media = httpwire.MediaType(response.Header)
	from := watch.PatientReader(response.Body, patience)
	if f := a.begin(request, u, from); f != nil {
		if ctx.Err() != nil {
			f = &failure{refusal: refusalOf(context.Cause(ctx)), next: nobody, billed: f.billed}
		}
		u.close()
		return nil, f
	}
	a.begun = true
	watch.Heard(patience())
	return u, nil
}

// patience is how long the provider may be silent: as long as usual, and while others may be asked no longer than its
// share of the run's time that is left. One that says anything, if only that it is there, is waited for.
func (a *attempt) patience(ctx context.Context, usual time.Duration) time.Duration {
	end, ends := ctx.Deadline()
	if a.begun || !ends || a.left <= 1 {
		return usual
	}
	return min(usual, time.Until(end)/time.Duration(a.left))
}

// key reads the key of a provider.
func (a *attempt) key() (secrets.Secret, *failure) {
	if a.route.provider.Key == "" {
		return "", nil
	}
	key, err := a.opts.Key(a.route.provider.Key)
	if err == nil && strings.ContainsFunc(string(key), func(c rune) bool { return c < ' ' || c >= 0x7f }) {
		err = errors.New("the key holds characters that no key has")
	}
	if err != nil {
		return "", failed502(another, RuleKey, "the key of the provider %s can't be used", a.name()).
			hint("whoever runs this server sees why with: aod models").because(err)
	}
	return key, nil
}

// send makes the request. No redirect is followed.
func (a *attempt) send(ctx context.Context, key secrets.Secret, streams bool) (*http.Response, error) {
	provider := a.route.provider
	set := a.q.changes(a.route.use, provider, streams)
	body := a.q.edit(set, a.q.renamed(provider, set))
	if s := a.route.script; s != nil {
		return s.Answer(ctx, a.run, string(a.q.dialect.name), bytes.Join(body, nil))
	}
	address := cmp.Or(provider.BaseURL, vendors[provider.Kind]) + a.q.dialect.path
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	a.server = u.Hostname()
	request := (&http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Header: a.header.Clone(), ContentLength: body.size(),
		Body:    body.reader(),
		GetBody: func() (io.ReadCloser, error) { return body.reader(), nil },
	}).WithContext(ctx)
	if a.route.said != nil {
		for _, name := range ofDialects {
			request.Header.Del(name)
		}
	}
	authorise(request.Header, a.q.dialect.name, provider.Kind, key)
	return a.opts.Transport.RoundTrip(request)
}

func authorise(h http.Header, d catalog.Dialect, kind catalog.Kind, key secrets.Secret) {
	if d == catalog.Messages && h.Get("Anthropic-Version") == "" {
		h.Set("Anthropic-Version", "2023-06-01")
	}
	if key == "" {
		return
	}
	if kind == catalog.Anthropic || d == catalog.Messages {
		h.Set("X-Api-Key", string(key))
	}
	if kind != catalog.Anthropic {
		h.Set("Authorization", "Bearer "+string(key))
	}
}

// ofDialects are the headers of a request that go on in its own dialect.
var ofDialects = []string{"Anthropic-Version", "Anthropic-Beta", "Openai-Beta"}

// forwarded are the headers of a request that a provider gets.
func forwarded(from http.Header) http.Header {
	h := http.Header{"Content-Type": {typeJSON}, "Accept-Encoding": {"identity"}, "User-Agent": {"aod"}}
	for _, name := range ofDialects {
		if value := from.Get(name); value != "" && len(value) <= 1024 {
			h.Set(name, value)
		}
	}
	return h
}

// lost is the failure of a request without an answer.
func (a *attempt) lost(ctx, request context.Context, err error) *failure {
	switch {
	case ctx.Err() != nil:
		return &failure{refusal: refusalOf(context.Cause(ctx)), next: nobody}
	case errors.Is(context.Cause(request), httpwire.ErrSilent):
		return silent(a.name())
	}
	return failed502(same, RuleProvider, "the provider %s can't be reached", a.name()).
		hint("whoever runs this server sees what it is with: aod models").because(err)
}
