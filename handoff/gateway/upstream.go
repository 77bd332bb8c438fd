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

	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// upstream is an answer of a provider that may be given to the run.
type upstream struct {
	status int
	header http.Header
	media  string
	key    secrets.Secret
	meter  meter

	body   []byte       // of a plain answer; nil for a stream
	events *eventReader // of a stream; nil for a plain answer
	head   []byte       // what came before its first real event
	held   []byte       // the event that is to be passed on next
	kind   what         // of that one

	source io.ReadCloser
	watch  *httpwire.Silence
	leave  func() // the provider's gate
	extra  func() // memory of a large plain answer
}

func (u *upstream) close() {
	u.watch.Stop(nil)
	u.source.Close()
	if u.leave != nil {
		u.leave()
	}
	if u.extra != nil {
		u.extra()
	}
}

// vendors are the addresses of the kinds that have one.
var vendors = map[catalog.Kind]string{
	catalog.OpenAI:    "https://api.openai.com/v1",
	catalog.Anthropic: "https://api.anthropic.com/v1",
}

// open sends the request to a provider, and reads what begins the answer.
func (c *call) open(ctx context.Context, r route) (*upstream, *failure) {
	key, f := c.key(r)
	if f != nil {
		return nil, f
	}
	u := &upstream{key: key, meter: meter{dialect: c.dialect.name}}
	request, watch := httpwire.WatchSilence(ctx, c.gw.opts.FirstByte)
	u.watch = watch
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(request, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	response, err := c.send(traced, r, key) //nolint:bodyclose // upstream.close does
	if err != nil {
		watch.Stop(nil)
		f := c.lost(ctx, request, r, err)
		f.billed = sent.Load()
		return nil, f
	}
	watch.Heard(c.gw.opts.Silence)
	u.status, u.header, u.source = response.StatusCode, response.Header, response.Body
	u.media = httpwire.MediaType(response.Header)
	from := watch.Reader(response.Body, c.gw.opts.Silence)
	if f := c.begin(request, r, u, from); f != nil {
		if ctx.Err() != nil {
			f = &failure{refusal: refusalOf(context.Cause(ctx)), next: nobody, billed: f.billed}
		}
		u.close()
		return nil, f
	}
	return u, nil
}

// key reads the key of a provider.
func (c *call) key(r route) (secrets.Secret, *failure) {
	if r.provider.Key == "" {
		return "", nil
	}
	key, err := c.gw.opts.Key(r.provider.Key)
	if err == nil && strings.ContainsFunc(string(key), func(c rune) bool { return c < ' ' || c >= 0x7f }) {
		err = errors.New("the key holds characters that no key has")
	}
	if err != nil {
		return "", failed502(another, RuleKey, "the key of the provider %s can't be used", r.use.Provider).
			hint("whoever runs this server sees why with: aod models").because(err)
	}
	return key, nil
}

// send makes the request. No redirect is followed.
func (c *call) send(ctx context.Context, r route, key secrets.Secret) (*http.Response, error) {
	body := c.q.edit(c.q.changes(r.use, r.provider))
	if s := cmp.Or(c.s.Script, c.known.scripts[r.use.Provider]); s != nil {
		return s.Answer(ctx, c.s.Run, string(c.dialect.name), bytes.Join(body, nil))
	}
	address := cmp.Or(r.provider.BaseURL, vendors[r.provider.Kind]) + c.dialect.path
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	c.server = u.Hostname()
	request := (&http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Header: c.header.Clone(), ContentLength: body.size(),
		Body:    body.reader(),
		GetBody: func() (io.ReadCloser, error) { return body.reader(), nil },
	}).WithContext(ctx)
	authorise(request.Header, c.dialect.name, r.provider.Kind, key)
	return c.gw.opts.Transport.RoundTrip(request)
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

// forwarded are the headers of a request that a provider gets.
func forwarded(from http.Header) http.Header {
	h := http.Header{"Content-Type": {typeJSON}, "Accept-Encoding": {"identity"}, "User-Agent": {"aod"}}
	for _, name := range []string{"Anthropic-Version", "Anthropic-Beta", "Openai-Beta"} {
		if value := from.Get(name); value != "" && len(value) <= 1024 {
			h.Set(name, value)
		}
	}
	return h
}

// passedOn are the headers of an answer that the run gets.
var passedOn = []string{"X-Request-Id", "Request-Id", "Openai-Processing-Ms", "Openai-Version"}

// lost is the failure of a request without an answer.
func (c *call) lost(ctx, request context.Context, r route, err error) *failure {
	switch {
	case ctx.Err() != nil:
		return &failure{refusal: refusalOf(context.Cause(ctx)), next: nobody}
	case errors.Is(context.Cause(request), httpwire.ErrSilent):
		return silent(r)
	}
	return failed502(same, RuleProvider, "the provider %s can't be reached", r.use.Provider).
		hint("whoever runs this server sees what it is with: aod models").because(err)
}

func silent(r route) *failure {
	refusal := refuse(http.StatusGatewayTimeout, RuleSilent, "the provider %s doesn't answer in time", r.use.Provider).
		hint("stream the answer, or ask for less").because(httpwire.ErrSilent)
	return &failure{refusal: refusal, next: another, billed: true}
}
