package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/gateway/catalog"
	"github.com/agent-on-demand/aod/httpwire"
	"github.com/agent-on-demand/aod/strictjson"
)

const (
	typeEvents = "text/event-stream"
	maxError   = 1 << 20 // bytes of an error of a provider
	maxPause   = time.Minute
)

// begin reads a plain answer whole, and a stream up to its first real event: until then
// another attempt may be made.
func (c *call) begin(request context.Context, r route, u *upstream, from io.Reader) *failure {
	if u.status < 200 || u.status > 299 {
		return c.refused(r, u, from)
	}
	coding := u.header.Get("Content-Encoding")
	switch {
	case coding != "" && coding != "identity" || u.media != typeJSON && u.media != typeEvents:
		f := failed502(same, RuleProvider, "the provider %s answers with something else than a model's answer", r.use.Provider)
		_ = f.refusal.hint("whoever runs this server can check the provider's base_url")
		f.billed = true
		return f
	case u.media == typeJSON:
		return c.readPlain(request, r, u, from)
	}
	return c.readHead(request, r, u, from)
}

// broken is the failure of an answer that ended too early.
func (c *call) broken(request context.Context, r route, err error) *failure {
	if errors.Is(context.Cause(request), httpwire.ErrSilent) {
		return silent(r)
	}
	f := failed502(same, RuleProvider, "the answer of the provider %s broke off", r.use.Provider)
	_ = f.refusal.hint("ask again").because(err)
	f.billed = true
	return f
}

// smallAnswer is what a plain answer may have without asking for memory, in bytes.
const smallAnswer = 1 << 20

func (c *call) readPlain(request context.Context, r route, u *upstream, from io.Reader) *failure {
	body, err := io.ReadAll(io.LimitReader(from, smallAnswer))
	if err == nil && len(body) == smallAnswer {
		var rest []byte
		if u.extra, err = c.gw.bodies.try(c.s.Run, maxBody); err == nil {
			rest, err = io.ReadAll(httpwire.NewBody(from, maxBody-smallAnswer))
		}
		body = append(body, rest...)
	}
	var busy *Refusal
	switch {
	case errors.As(err, &busy):
		return &failure{refusal: busy, next: nobody, billed: true}
	case err != nil:
		return c.broken(request, r, err)
	}
	if u.quotesKey(body) {
		return c.quoted(r)
	}
	if strictjson.Check(body, strictjson.Rules{Ambiguous: true, Unbounded: true}) != nil {
		return c.broken(request, r, errors.New("the answer is no JSON"))
	}
	u.body = body
	u.meter.plain(body)
	return nil
}

// quotesKey reports whether a text has the key of the provider in it.
func (u *upstream) quotesKey(text []byte) bool {
	const least = 8 // a shorter one guards nothing, and may be a word
	return len(u.key) >= least && bytes.Contains(text, []byte(u.key))
}

func (c *call) quoted(r route) *failure {
	f := failed502(another, RuleKey, "the provider %s quotes its key", r.use.Provider)
	_ = f.refusal.hint("whoever runs this server sees more with: aod models")
	f.billed = true
	return f
}

func (c *call) readHead(request context.Context, r route, u *upstream, from io.Reader) *failure {
	u.events = newEventReader(from)
	for {
		raw, err := u.events.next()
		if err != nil || len(u.head) > maxEvent {
			return c.broken(request, r, errors.Join(err, errors.New("nothing came before")))
		}
		switch kind := u.meter.event(raw); {
		case u.quotesKey(raw):
			return c.quoted(r)
		case kind == failed:
			return c.failedFirst(r, raw)
		case kind != nothing:
			u.held, u.kind = raw, kind
			return nil
		}
		u.head = append(u.head, raw...)
	}
}

// refused is the failure of an answer with another status.
func (c *call) refused(r route, u *upstream, from io.Reader) *failure {
	body, _ := io.ReadAll(io.LimitReader(from, maxError)) // what there is of it
	switch {
	case u.status == http.StatusUnauthorized, u.status == http.StatusForbidden:
		f := failed502(another, RuleKey, "the provider %s doesn't take the key", r.use.Provider)
		_ = f.refusal.hint("whoever runs this server sees more with: aod models")
		return f
	case u.status == http.StatusTooManyRequests, u.status == http.StatusServiceUnavailable:
		return limited(r, u, body)
	case u.status == http.StatusRequestTimeout, u.status == http.StatusConflict, u.status >= 500:
		f := c.down(r, u.status)
		return f.leftAlone(u.header)
	case u.status < http.StatusBadRequest, u.status == http.StatusPaymentRequired:
		return withNext(c.down(r, u.status), another)
	}
	refusal := refuse(u.status, RuleProvider, "the provider %s refuses the request", r.use.Provider).hint("read the dialect's documentation")
	if !u.quotesKey(body) && strictjson.Check(body, strictjson.Rules{Ambiguous: true, Unbounded: true}) == nil {
		refusal.passed = body
	}
	return &failure{refusal: refusal, next: nobody}
}

func (c *call) down(r route, status int) *failure {
	f := failed502(same, RuleProvider, "the provider %s answers with the status %d", r.use.Provider, status)
	_ = f.refusal.hint("ask again later")
	return f
}

func withNext(f *failure, n next) *failure {
	f.next = n
	return f
}

// limited is the failure of a provider that has too much to do, or whose quota is spent.
func limited(r route, u *upstream, body []byte) *failure {
	f := &failure{refusal: refuse(http.StatusTooManyRequests, RuleRate, "the provider %s takes no more requests for now", r.use.Provider).hint("ask again later, or less often")}
	if u.status != http.StatusTooManyRequests {
		f.refusal.Status, f.refusal.Rule = http.StatusBadGateway, RuleProvider
	}
	if bytes.Contains(body, []byte("insufficient_quota")) {
		f.next = another
	}
	return f.leftAlone(u.header)
}

// leftAlone heeds the provider's wish for a pause. Of a long one another provider is asked.
func (f *failure) leftAlone(h http.Header) *failure {
	f.after = retryAfter(h)
	if f.after > maxPause {
		f.after, f.next = 0, another
	}
	return f
}

func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseInt(h.Get("Retry-After-Ms"), 10, 32); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// failedFirst is the failure of a stream that begins with an error.
func (c *call) failedFirst(r route, raw []byte) *failure {
	data := bytes.Clone(eventData(raw))
	problem := member(data, "error")
	if c.dialect.name == catalog.Responses && problem == nil {
		problem = data
	}
	why := textOf(member(problem, "type")) + " " + textOf(member(problem, "code"))
	switch {
	case strings.Contains(why, "authentication"), strings.Contains(why, "permission"), strings.Contains(why, "api_key"):
		f := failed502(another, RuleKey, "the provider %s doesn't take the key", r.use.Provider)
		_ = f.refusal.hint("whoever runs this server sees more with: aod models")
		return f
	case strings.Contains(why, "insufficient_quota"), strings.Contains(why, "billing"):
		return withNext(c.down(r, http.StatusTooManyRequests), another)
	case strings.Contains(why, "rate_limit"):
		return &failure{refusal: refuse(http.StatusTooManyRequests, RuleRate, "the provider %s takes no more requests for now", r.use.Provider).hint("ask again later, or less often")}
	case strings.Contains(why, "invalid_request"), strings.Contains(why, "context_length"), strings.Contains(why, "not_found"):
		refusal := refuse(http.StatusBadRequest, RuleProvider, "the provider %s refuses the request", r.use.Provider).hint("read the dialect's documentation")
		refusal.passed = data
		return &failure{refusal: refusal, next: nobody}
	}
	return c.down(r, http.StatusInternalServerError)
}
