package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
)

// call is one request, from its body to its answer.
type call struct {
	gw      *Gateway
	session *Session
	dialect *dialect

	q         *request
	target    target
	header    http.Header // that goes on to a provider
	meta      Call
	bill      bill
	providers providers
	reply     reply
	refusal   *Refusal // nil: it was answered
}

func newCall(gw *Gateway, s *Session, d *dialect, w http.ResponseWriter) *call {
	return &call{
		gw: gw, session: s, dialect: d,
		meta:  Call{ID: rand.Text(), Run: s.Run, Root: s.Root, Dialect: d.name},
		reply: reply{w: w, patience: gw.opts.Silence, started: time.Now()},
	}
}

// prepare holds a request against what the run may ask.
func (c *call) prepare(ctx context.Context, header http.Header, body []byte) (err error) {
	c.meta.Digest = digestOf(c.dialect, body)
	if c.q, err = readRequest(c.dialect, body); err != nil {
		return err
	}
	c.meta.Model, c.meta.Stream, c.meta.Key = c.q.model, c.q.stream, header.Get("Idempotency-Key")
	if c.target, err = targetOf(c.gw.catalog.Load(), c.session, c.q); err != nil {
		return err
	}
	if err := c.q.seal(c.q.model, c.target.model, c.target.isStrict()); err != nil {
		return err
	}
	if err := c.q.bound(c.target.mostOutput(c.session.MaxTokens)); err != nil {
		return err
	}
	c.meta.MaxTokens = c.q.cap
	c.target.order(c.q)
	c.header = forwarded(header)
	if _, limited := c.session.limited(); limited && !c.target.isPriced() {
		return refuse(http.StatusPaymentRequired, RulePrice,
			"a budget of cost holds for this run, and nobody knows what the model %s costs", c.q.model).
			hint("add models.%s.price to the server's file", c.q.model)
	}
	return context.Cause(ctx)
}

// answer answers a request that may be asked.
func (c *call) answer(ctx context.Context) error {
	s := c.session
	limited, _ := s.limited()
	free, err := c.target.translate(ctx, c.q, limited)
	if err != nil {
		return err
	}
	defer free()
	asked := cassette.Request{Dialect: string(c.dialect.name), Model: c.q.model, Stream: c.q.stream, Body: c.q.body}
	stored := &storedAnswer{answers: s.Answers, key: c.meta.Key, digest: c.meta.Digest}
	c.reply.kept.wanted = s.Content || s.Record != nil || s.Cache != nil || c.meta.Key != ""
	c.bill = bill{ledger: s.Ledger, log: c.gw.opts.Logger, call: &c.meta}
	c.providers = providers{
		gw: c.gw, session: s, q: c.q, asked: asked, target: &c.target, header: c.header, meta: &c.meta,
		bill: &c.bill, stored: stored,
	}
	return answerFirst(ctx, &c.reply,
		stored,
		&replay{player: s.Replay, asked: asked},
		&replay{player: s.Resume, asked: asked, before: true},
		&cachedAnswer{answers: s.Cache, asked: asked, digest: c.meta.Digest},
		&c.providers, // or the script in the place of one
	)
}

// fail answers with an error, if there is anybody to hear it.
func (c *call) fail(ctx context.Context, err error) {
	if c.refusal = refusalOf(err); c.refusal.Rule == RuleInternal && ctx.Err() != nil {
		c.refusal = refuseEnding(err) // neither the run nor its time is over
	}
	gone := errors.Is(err, errGone) || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled)
	switch {
	case gone || c.refusal.told:
	case c.reply.begun:
		_ = c.reply.write(c.refusal.event(c.dialect.name)) // it may be gone by now
	default:
		answerRefusal(c.reply.w, c.dialect.name, c.refusal)
	}
	if c.refusal.Status >= http.StatusInternalServerError {
		c.gw.opts.Logger.Warn("model call failed", "run", c.session.Run, "model", c.meta.Model,
			"provider", c.meta.Provider, "rule", c.refusal.Rule, "status", c.refusal.Status, "error", c.refusal.err)
	}
}

// tell tells the recorder of the call.
func (c *call) tell() {
	if c.session.Recorder == nil {
		return
	}
	r, p := &c.reply, &c.providers
	e := Exchange{
		Call: c.meta, Source: r.source, Status: r.status, Spent: c.bill.spent, Attempts: p.attempts, Raced: p.raced,
		Started: r.started, About: p.about, Server: p.server, First: r.first, Took: time.Since(r.started),
	}
	if c.refusal != nil {
		e.Rule = c.refusal.Rule
		if !r.begun {
			e.Status = c.refusal.Status
		}
	}
	if c.session.Content && c.q != nil {
		e.Request, e.Answer, e.Cut = c.q.body, bytes.Join(r.kept.chunks, nil), r.kept.cut
		if !r.begun && c.refusal != nil {
			e.Answer = c.refusal.body(c.dialect.name)
		}
	}
	c.session.Recorder.Record(e)
}
