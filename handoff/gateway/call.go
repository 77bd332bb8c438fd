package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/gateway/ledger"
)

// call is one request, from its body to its answer.
type call struct {
	h       *handler
	gw      *Gateway
	s       *Session
	w       http.ResponseWriter
	dialect *dialect
	started time.Time

	q      *request
	model  catalog.Model
	known  *configured // what it was when the call began
	routes []route
	header http.Header // that goes on to a provider
	meta   Call
	worst  ledger.Amount
	hold   Hold // of the attempt under way; nil: nothing is set aside

	source   Source
	status   int  // that was answered
	begun    bool // it was sent
	refusal  *Refusal
	spent    Spent
	about    About
	server   string // the host of the latest provider
	attempts int
	first    time.Duration
	kept     kept
}

// route is a provider's model that may answer.
type route struct {
	use      catalog.Use
	provider catalog.Provider
}

// serve answers a request. An error has still to be told.
func (c *call) serve(ctx context.Context, r *http.Request) error {
	c.meta = Call{ID: rand.Text(), Run: c.s.Run, Root: c.s.Root, Dialect: c.dialect.name}
	if !c.h.underWay.TryAcquire(1) {
		return refuse(http.StatusServiceUnavailable, RuleBusy, "this run has %d requests under way already", maxCalls).
			hint("wait for some of them to end")
	}
	defer c.h.underWay.Release(1)
	body, err := readBody(ctx, r)
	if err != nil {
		return err
	}
	if err := c.prepare(ctx, r.Header, body); err != nil {
		return err
	}
	return c.once(ctx)
}

// prepare holds a request against what the run may ask.
func (c *call) prepare(ctx context.Context, header http.Header, body []byte) (err error) {
	c.known = c.gw.catalog.Load()
	c.meta.Digest = digestOf(c.dialect, body)
	if c.q, err = readRequest(c.dialect, body); err != nil {
		return err
	}
	c.meta.Model, c.meta.Stream, c.meta.Key = c.q.model, c.q.stream, header.Get("Idempotency-Key")
	if c.model, err = c.s.model(&c.known.Catalog, c.q.model); err != nil {
		return err
	}
	if err := c.findRoutes(); err != nil {
		return err
	}
	if err := c.q.seal(c.q.model, c.model, c.isStrict()); err != nil {
		return err
	}
	if err := c.q.bound(c.mostOutput()); err != nil {
		return err
	}
	c.meta.MaxTokens = c.q.cap
	c.header = forwarded(header)
	if c.s.CostLimited && c.model.Price == nil {
		return refuse(http.StatusPaymentRequired, RulePrice,
			"a budget of cost holds for this run, and nobody knows what the model %s costs", c.q.model).
			hint("add models.%s.price to the server's file", c.q.model)
	}
	return context.Cause(ctx)
}

func (c *call) findRoutes() error {
	for _, use := range c.model.Use {
		if p, there := c.known.Providers[use.Provider]; there && p.Speaks(c.dialect.name) {
			c.routes = append(c.routes, route{use, p})
		}
	}
	if len(c.routes) > 0 {
		return nil
	}
	var names []string
	for _, d := range c.known.Dialects(c.model) {
		names = append(names, string(d))
	}
	return refuse(http.StatusBadRequest, RuleDialect, "nobody who has the model %s speaks %s", c.q.model,
		c.dialect.name).
		hint("ask it by %s", strings.Join(names, ", "))
}

// isStrict reports whether a vendor may be asked, of whom every field is known.
func (c *call) isStrict() bool {
	return slices.ContainsFunc(c.routes, func(r route) bool { return !r.provider.AnyField })
}

func (c *call) mostOutput() int64 {
	most := c.model.OutputCap()
	if c.s.MaxTokens > 0 {
		most = min(most, c.s.MaxTokens)
	}
	return most
}

// once answers a request, or gives the answer that its Idempotency-Key had before.
func (c *call) once(ctx context.Context) error {
	key := c.meta.Key
	if key == "" {
		return c.run(ctx)
	}
	if len(key) > 255 {
		return refuse(http.StatusBadRequest, RuleIdempotency, "the Idempotency-Key has more than 255 bytes").
			hint("send a shorter one")
	}
	release, err := c.h.keys.hold(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	if a, digest, found := c.s.Answers.Find(ctx, key); found {
		if digest != c.meta.Digest {
			return refuse(http.StatusUnprocessableEntity, RuleIdempotency,
				"another request was sent with this Idempotency-Key").hint("send a key of its own with each request")
		}
		return c.give(FromKey, a)
	}
	if err := c.run(ctx); err != nil || c.source == FromProvider { // ask has kept it
		return err
	}
	c.keep(ctx, c.kept, c.status)
	return nil
}

// keep stores an answer by its Idempotency-Key, if it is whole.
func (c *call) keep(ctx context.Context, k kept, status int) {
	if a, whole := k.answer(status); whole {
		c.s.Answers.Keep(context.WithoutCancel(ctx), c.meta.Key, c.meta.Digest, a)
	}
}

// run answers from a cassette or a cache, where there is one, or by a provider.
func (c *call) run(ctx context.Context) error {
	c.kept.wanted = c.s.Content || c.s.Record != nil || c.s.Cache != nil || c.meta.Key != ""
	if c.s.Replay != nil {
		return c.replay()
	}
	key, a, found := c.cached(ctx)
	if found {
		return c.give(FromCache, a)
	}
	err := c.lent(ctx)
	if a, whole := c.kept.answer(c.status); whole && err == nil && key != "" {
		c.s.Cache.Keep(context.WithoutCancel(ctx), key, c.meta.Digest, a)
	}
	return c.record(err)
}

func (c *call) taped() cassette.Request {
	return cassette.Request{Dialect: string(c.dialect.name), Model: c.q.model, Stream: c.q.stream, Body: c.q.body}
}

func (c *call) replay() error {
	a, err := c.s.Replay.Next(c.taped())
	var miss *cassette.Miss
	if errors.As(err, &miss) {
		return refuse(http.StatusBadRequest, RuleReplay, "%s", miss).
			hint("record the cassette anew, or send what was recorded").because(miss)
	}
	if err != nil {
		return err
	}
	return c.give(FromReplay, a)
}

func (c *call) cached(ctx context.Context) (key string, a cassette.Answer, found bool) {
	if c.s.Cache == nil {
		return "", a, false
	}
	key, err := cassette.KeyOf(c.taped())
	if err != nil {
		return "", a, false
	}
	a, _, found = c.s.Cache.Find(ctx, key)
	return key, a, found
}

// record tells a cassette what a provider has answered, also that it refused.
func (c *call) record(err error) error {
	if c.s.Record == nil {
		return err
	}
	a, whole := c.kept.answer(c.status)
	var refused *Refusal
	if errors.As(err, &refused) && refused.passed != nil {
		a, whole = cassette.Answer{Status: refused.Status, Type: typeJSON, Chunks: []cassette.Chunk{refused.passed}},
			true
	} else if err != nil {
		return err
	}
	if whole {
		if kept := c.s.Record.Keep(c.taped(), a); kept != nil {
			c.gw.opts.Logger.Warn("model call not recorded", "run", c.s.Run, "error", kept)
		}
	}
	return err
}

// lent asks a provider while others have the run's slot. The run has it again before it sees
// the end of the answer.
func (c *call) lent(ctx context.Context) error {
	var up *upstream
	err := context.Canceled // unless it is asked
	wait := func() { up, err = c.ask(ctx) }
	if c.s.Turn == nil {
		wait()
	} else {
		c.s.Turn.Await(ctx, wait)
		if !c.s.Turn.Regain(ctx) && err == nil {
			err = cmp.Or(context.Cause(ctx), context.Canceled)
		}
	}
	if up != nil {
		defer up.close()
	}
	if err != nil {
		return err
	}
	return c.finish(up)
}
