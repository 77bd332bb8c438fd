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

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
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
		return failed502(same, RuleProvider, "the provider %s answers with something else than a model's answer",
			r.use.Provider).
			hint("whoever runs this server can check the provider's base_url").bill()
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
	return failed502(same, RuleProvider, "the answer of the provider %s broke off", r.use.Provider).hint("ask again").
		because(err).bill()
}

// smallAnswer is what a plain answer may have without asking for memory, in bytes.
const smallAnswer = 1 << 20

func (c *call) readPlain(request context.Context, r route, u *upstream, from io.Reader) *failure {
	body, err := io.ReadAll(io.LimitReader(from, smallAnswer))
	if err == nil && len(body) == smallAnswer {
		var rest []byte
		if u.extra, err = bytegate.Hold(request, maxBody); err == nil {
			rest, err = io.ReadAll(httpwire.NewBody(from, maxBody-smallAnswer))
		}
		body = append(body, rest...)
	}
	switch {
	case fault.Is(err, fault.Unavailable):
		return &failure{refusal: refusalOf(err), next: nobody, billed: true}
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

// quotesKey reports whether a text has the key of the provider in it, also escaped.
func (u *upstream) quotesKey(text []byte) bool {
	return u.key.CanBeFound() && u.key.In(text) // a shorter one guards nothing, and may be a word
}

func (c *call) quoted(r route) *failure {
	return badKey("the provider %s quotes its key", r.use.Provider).bill()
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
		return badKey("the provider %s doesn't take the key", r.use.Provider)
	case u.status == http.StatusTooManyRequests, u.status == http.StatusServiceUnavailable:
		return limited(r, u, body)
	case u.status == http.StatusRequestTimeout, u.status == http.StatusConflict, u.status >= 500:
		return c.down(r, u.status).leftAlone(u.header)
	case u.status < http.StatusBadRequest, u.status == http.StatusPaymentRequired:
		return withNext(c.down(r, u.status), another)
	}
	if u.quotesKey(body) || strictjson.Check(body, strictjson.Rules{Ambiguous: true, Unbounded: true}) != nil {
		body = nil
	}
	return refusedWith(u.status, r, body)
}

// refusedWith is the failure of a request that the provider refuses; nil is no body to pass on.
func refusedWith(status int, r route, body []byte) *failure {
	refusal := refuse(status, RuleProvider, "the provider %s refuses the request", r.use.Provider).
		hint("read the dialect's documentation")
	refusal.passed = body
	return &failure{refusal: refusal, next: nobody}
}

func (c *call) down(r route, status int) *failure {
	return failed502(same, RuleProvider, "the provider %s answers with the status %d", r.use.Provider, status).
		hint("ask again later")
}

func withNext(f *failure, n next) *failure {
	f.next = n
	return f
}

// limited is the failure of a provider that has too much to do, or whose quota is spent.
func limited(r route, u *upstream, body []byte) *failure {
	f := overRate(r)
	if u.status != http.StatusTooManyRequests {
		f.refusal.Status, f.refusal.Rule = http.StatusBadGateway, RuleProvider
	}
	if bytes.Contains(body, []byte("insufficient_quota")) {
		f.next = another
	}
	return f.leftAlone(u.header)
}

func overRate(r route) *failure {
	return &failure{refusal: refuse(http.StatusTooManyRequests, RuleRate,
		"the provider %s takes no more requests for now", r.use.Provider).hint("ask again later, or less often")}
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
		return badKey("the provider %s doesn't take the key", r.use.Provider)
	case strings.Contains(why, "insufficient_quota"), strings.Contains(why, "billing"):
		return withNext(c.down(r, http.StatusTooManyRequests), another)
	case strings.Contains(why, "rate_limit"):
		return overRate(r)
	case strings.Contains(why, "invalid_request"), strings.Contains(why, "context_length"),
		strings.Contains(why, "not_found"):
		return refusedWith(http.StatusBadRequest, r, data)
	}
	return c.down(r, http.StatusInternalServerError)
}
