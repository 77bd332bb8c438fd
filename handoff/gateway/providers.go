package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// attemptsEach is how often a provider is asked, before the next one is.
const attemptsEach = 3

// providers answer what nobody has answered before, one of those on the target's routes.
type providers struct {
	gw      *Gateway
	session *Session
	q       *request
	asked   cassette.Request
	target  *target
	header  http.Header // that goes on to them
	meta    *Call
	bill    *bill
	stored  *storedAnswer

	attempts int
	raced    string // who lost a race
	about    About
	server   string // the host of the latest one
}

func (p *providers) answer(ctx context.Context, to *reply) (bool, error) {
	return true, p.record(to, p.lend(ctx, to))
}

// lend asks while others have the run's slot. The run has it again before it sees the end of the
// answer.
func (p *providers) lend(ctx context.Context, to *reply) error {
	var up *upstream
	err := context.Canceled // unless one is asked
	wait := func() { up, err = p.ask(ctx, to) }
	if turn := p.session.Turn; turn == nil {
		wait()
	} else {
		turn.Await(ctx, wait)
		if !turn.Regain(ctx) && err == nil {
			err = cmp.Or(context.Cause(ctx), context.Canceled)
		}
	}
	if up != nil {
		defer up.close()
	}
	if err != nil {
		return err
	}
	return to.finish(up)
}

// record tells a cassette what a provider has answered, also that it refused.
func (p *providers) record(to *reply, err error) error {
	if p.session.Record == nil {
		return err
	}
	a, whole := to.kept.answer(to.status)
	var refused *Refusal
	if errors.As(err, &refused) && refused.passed != nil {
		a, whole = cassette.Answer{Status: refused.Status, Type: typeJSON, Chunks: []cassette.Chunk{refused.passed}},
			true
	} else if err != nil {
		return err
	}
	if whole {
		if kept := p.session.Record.Keep(p.asked, a); kept != nil {
			p.gw.opts.Logger.Warn("model call not recorded", "run", p.session.Run, "error", kept)
		}
	}
	return err
}

// ask gets an answer of a provider: a plain one whole, a stream up to its last event, which
// is held. It is stored then, and what it took is settled after that: where the process dies in
// between, the answer is there, and is charged in full. An upstream has to be closed, also
// after an error.
func (p *providers) ask(ctx context.Context, to *reply) (up *upstream, err error) {
	limited, _ := p.session.limited()
	if p.bill.worst, err = p.target.worst(p.q, limited); err != nil {
		return nil, err
	}
	guess := p.q.guess()
	if p.races() {
		guess *= racers
	}
	leave, err := p.gw.gate("model "+p.q.model).enter(ctx, p.session.Run, guess)
	if err != nil {
		return nil, err
	}
	defer func() { leave(guess - p.bill.spent.Amount.Tokens) }()
	defer p.bill.giveBack(ctx)
	if up, err = p.first(ctx); err != nil {
		return nil, err
	}
	to.source = FromProvider
	defer func() { p.about = up.meter.about }()
	if up.events != nil {
		if err := p.relay(ctx, up, to); err != nil {
			return up, err
		}
	}
	p.stored.storeAhead(ctx, &to.kept, up)
	p.bill.settle(ctx, p.bill.charge(&up.meter))
	up.leave() // the rest is the reader's time
	return up, nil
}

// first asks the providers until one answers: one after the other, in a race the first two at once.
func (p *providers) first(ctx context.Context) (*upstream, error) {
	routes := p.target.routes
	var last *failure
	if p.races() {
		up, f, raced := p.race(ctx)
		if up != nil {
			return up, nil
		}
		if last = f; raced {
			routes = routes[racers:]
		}
	}
	for i, r := range routes {
		if last != nil && last.next == nobody {
			break
		}
		var up *upstream
		if up, last = p.askOne(ctx, r, len(routes)-i); last == nil {
			return up, nil
		}
	}
	return nil, last.refusal
}

// askOne asks a provider up to three times, while as many may still be asked.
func (p *providers) askOne(ctx context.Context, r route, left int) (up *upstream, last *failure) {
	until := share(ctx, left)
	for n := range attemptsEach {
		if n > 0 {
			if err := p.backOff(ctx, n); err != nil {
				return nil, &failure{refusal: refusalOf(err), next: nobody}
			}
		}
		if up, last = p.try(ctx, r, left); last == nil {
			return up, nil
		}
		p.settleFailed(ctx, last)
		if last.next != same || !until.IsZero() && time.Until(until) <= last.after {
			break
		}
	}
	return nil, last
}

// share is when a provider isn't asked again, so that as many may still be asked before the run's time is over: zero
// for the last one, and where the run has all the time.
func share(ctx context.Context, left int) time.Time {
	end, ends := ctx.Deadline()
	if !ends || left == 1 {
		return time.Time{}
	}
	return time.Now().Add(time.Until(end) / time.Duration(left))
}

// settleFailed charges for an attempt without an answer, if its provider does.
func (p *providers) settleFailed(ctx context.Context, f *failure) {
	switch {
	case f.usage != nil:
		p.bill.settle(ctx, p.bill.charge(f.usage))
	case f.billed:
		p.bill.settleInFull(ctx)
	default:
		return
	}
	p.meta.Again = true
}

// backOff waits before another attempt: half a second that doubles, more or less.
func (p *providers) backOff(ctx context.Context, n int) error {
	base := p.gw.opts.Backoff << (n - 1)
	return pause.For(ctx, base/2+rand.N(base)) //nolint:gosec // it spreads requests, and guards nothing
}

// goTo has the call be one of a provider.
func (p *providers) goTo(r route) {
	p.meta.Provider, p.meta.Upstream, p.bill.price = r.use.Provider, r.use.Model, r.price
}

// try makes one attempt at one provider, when it is its turn there, while as many may still be asked.
func (p *providers) try(ctx context.Context, r route, left int) (*upstream, *failure) {
	p.goTo(r)
	if err := p.bill.reserve(ctx); err != nil {
		return nil, &failure{refusal: refusalOf(err), next: nobody}
	}
	gate := p.gw.gate("provider " + r.use.Provider)
	leave, err := gate.enter(ctx, p.session.Run, 0)
	if err != nil {
		return nil, &failure{refusal: refusalOf(err), next: nobody}
	}
	p.attempts++
	a := &attempt{
		opts: &p.gw.opts, run: p.session.Run, route: r, q: r.request(p.q), header: p.header, left: left,
		hears: p.listener(r),
	}
	up, f := a.open(ctx)
	if f != nil && a.heard && !p.q.stream && f.next == nobody && !f.billed && ctx.Err() == nil {
		a.hears = nil // it may refuse streams alone
		up, f = a.open(ctx)
	}
	p.server = cmp.Or(a.server, p.server)
	if f != nil {
		leave(0)
		if f.after > 0 {
			gate.pause(f.after)
		}
		return nil, f
	}
	up.leave = func() { leave(0) }
	return up, nil
}

// listener is told of the answer of a provider as it comes. One that can't count a stream isn't asked for one, and of
// two that race nobody knows yet whose answer it is.
func (p *providers) listener(r route) Listener {
	if p.q.dialect.name == catalog.Embeddings || !p.q.stream && r.provider.NoUsage || p.races() {
		return nil
	}
	return p.session.Listener
}

// relay passes the events of a stream on as they came, up to the last one, which is held.
func (p *providers) relay(ctx context.Context, u *upstream, to *reply) error {
	to.start(u)
	raw, kind := slices.Concat(u.head, u.held), u.kind
	u.head, u.held = nil, nil
	for {
		switch {
		case u.quotesKey(raw):
			return p.cutOff(ctx, u, quotedKey(p.meta.Provider).refusal)
		case kind == failed:
			return p.failedLate(ctx, u, raw, to)
		case kind == terminal:
			u.held = raw
			return nil
		case kind == usageOnly && !p.q.wantsUsage():
		default:
			if err := to.write(raw); err != nil {
				return p.hungUp(ctx, err)
			}
		}
		var err error
		raw, kind, err = u.next()
		if errors.Is(err, io.EOF) && u.meter.ended {
			return nil
		}
		if err != nil {
			return p.endedEarly(ctx, u, err)
		}
	}
}

// hungUp charges for an answer that nobody reads any more.
func (p *providers) hungUp(ctx context.Context, err error) error {
	p.bill.settleInFull(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return errors.Join(errGone, err)
}

// endedEarly charges for a stream that broke off.
func (p *providers) endedEarly(ctx context.Context, u *upstream, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return p.hungUp(ctx, cause)
	}
	refusal := refuse(http.StatusBadGateway, RuleProvider, "the answer of the provider %s broke off", p.meta.Provider).
		hint("ask again").because(err)
	if errors.Is(err, httpwire.ErrSilent) || errors.Is(err, context.Canceled) { // of its own request, not of the run's
		refusal = refuse(http.StatusGatewayTimeout, RuleSilent, "the provider %s fell silent", p.meta.Provider).
			hint("ask again").because(httpwire.ErrSilent)
	}
	_ = errors.As(err, &refusal) // it can't be translated
	return p.cutOff(ctx, u, refusal)
}

// failedLate passes a provider's own error on, which ends a stream that has begun.
func (p *providers) failedLate(ctx context.Context, u *upstream, raw []byte, to *reply) error {
	f := failed502(nobody, RuleProvider, "the provider %s ends its answer with an error", p.meta.Provider).
		hint("ask again")
	if u.said != nil {
		return p.cutOff(ctx, u, f.says(u.words(eventData(raw))).refusal)
	}
	if err := to.write(raw); err != nil {
		return p.hungUp(ctx, err)
	}
	f.refusal.told = true
	return p.cutOff(ctx, u, f.refusal)
}

// cutOff charges for an answer without its end: by the usage, if it came before.
func (p *providers) cutOff(ctx context.Context, u *upstream, refusal *Refusal) error {
	p.bill.settle(ctx, p.bill.charge(&u.meter))
	return refusal
}
