package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"

	"github.com/agent-on-demand/aod/handoff/gateway/cassette"
)

// relay passes the events of a stream on as they came, up to the last one, which is held.
func (c *call) relay(ctx context.Context, u *upstream) error {
	c.start(u)
	raw, kind := slices.Concat(u.head, u.held), u.kind
	u.head, u.held = nil, nil
	for {
		switch {
		case u.quotesKey(raw):
			return c.cutOff(ctx, c.quoted(route{}).refusal)
		case kind == terminal:
			u.held = raw
			return nil
		case kind == usageOnly && !c.q.wantsUsage():
		default:
			if err := c.write(raw); err != nil {
				return c.hungUp(ctx, err)
			}
		}
		var err error
		raw, err = u.events.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.endedEarly(ctx, err)
		}
		kind = u.meter.event(raw)
	}
}

// hungUp charges for an answer that nobody reads any more.
func (c *call) hungUp(ctx context.Context, err error) error {
	c.settle(ctx, Spent{Amount: c.worst, Estimated: true})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return errors.Join(errGone, err)
}

// endedEarly charges for a stream that broke off.
func (c *call) endedEarly(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return c.hungUp(ctx, cause)
	}
	refusal := refuse(http.StatusBadGateway, RuleProvider, "the answer of the provider %s broke off", c.meta.Provider).
		hint("ask again").because(err)
	if errors.Is(err, httpwire.ErrSilent) || errors.Is(err, context.Canceled) { // of its own request, not of the run's
		refusal = refuse(http.StatusGatewayTimeout, RuleSilent, "the provider %s fell silent", c.meta.Provider).
			hint("ask again").because(httpwire.ErrSilent)
	}
	return c.cutOff(ctx, refusal)
}

func (c *call) cutOff(ctx context.Context, refusal *Refusal) error {
	c.settle(ctx, Spent{Amount: c.worst, Estimated: true})
	return refusal
}

// restTime is how long a provider may take to end a stream after its last event.
const restTime = 2 * time.Second

// finish passes on what was held.
func (c *call) finish(u *upstream) error {
	if u.events == nil {
		c.announce(len(u.body))
		c.start(u)
		return c.last(u.body)
	}
	if u.held == nil {
		c.kept.whole = true
		return nil
	}
	if err := c.write(u.held); err != nil {
		return errGone
	}
	u.watch.Heard(restTime)
	for {
		raw, err := u.events.next()
		if err != nil {
			c.kept.whole = true
			return nil //nolint:nilerr // the answer is whole
		}
		if err := c.write(raw); err != nil {
			return errGone
		}
	}
}

// start sends the status and the headers of an answer.
func (c *call) start(u *upstream) {
	for _, name := range passedOn {
		if value := u.header.Get(name); value != "" && len(value) <= 256 && !u.quotesKey([]byte(value)) {
			c.w.Header().Set(name, value)
		}
	}
	c.head(u.status, u.media)
}

// announce says how long an answer is that is there whole, so that its reader sees whether it
// was cut off.
func (c *call) announce(size int) { c.w.Header().Set("Content-Length", strconv.Itoa(size)) }

func (c *call) head(status int, media string) {
	c.w.Header().Set("Content-Type", media)
	c.status, c.begun, c.first = status, true, time.Since(c.started)
	c.kept.media = media
	c.w.WriteHeader(status)
}

// last writes all of an answer.
func (c *call) last(parts ...cassette.Chunk) error {
	for _, part := range parts {
		if err := c.write(part); err != nil {
			return errGone
		}
	}
	c.kept.whole = true
	return nil
}

// write passes a part of an answer on at once. A reader that takes nothing for too long is
// gone.
func (c *call) write(raw []byte) error {
	c.kept.add(raw)
	conn := http.NewResponseController(c.w)
	_ = conn.SetWriteDeadline(time.Now().Add(c.gw.opts.Silence)) // a writer without one is a test's
	if _, err := c.w.Write(raw); err != nil {
		return err
	}
	if err := conn.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// give answers with what was answered before.
func (c *call) give(from Source, a cassette.Answer) error {
	c.source = from
	if a.Type == typeJSON {
		c.announce(len(slices.Concat(a.Chunks...)))
	}
	if a.Status >= http.StatusBadRequest {
		c.w.Header().Set("X-Should-Retry", "false")
	}
	c.head(a.Status, a.Type)
	return c.last(a.Chunks...)
}

// fail answers with an error, if there is anybody to hear it.
func (c *call) fail(ctx context.Context, err error) {
	if c.refusal = refusalOf(err); c.refusal.Rule == RuleInternal && ctx.Err() != nil {
		c.refusal = refuseEnding(err) // neither the run nor its time is over
	}
	gone := errors.Is(err, errGone) || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled)
	switch {
	case gone:
	case c.begun:
		_ = c.write(c.refusal.event(c.dialect.name)) // it may be gone by now
	default:
		answerRefusal(c.w, c.dialect.name, c.refusal)
	}
	if c.refusal.Status >= http.StatusInternalServerError {
		c.gw.opts.Logger.Warn("model call failed", "run", c.s.Run, "model", c.meta.Model, "provider", c.meta.Provider,
			"rule", c.refusal.Rule, "status", c.refusal.Status, "error", c.refusal.err)
	}
}

// tell tells the recorder of the call.
func (c *call) tell() {
	if c.s.Recorder == nil {
		return
	}
	e := Exchange{
		Call: c.meta, Source: c.source, Status: c.status, Spent: c.spent, Attempts: c.attempts, Started: c.started,
		About: c.about, Server: c.server, First: c.first, Took: time.Since(c.started),
	}
	if c.refusal != nil {
		e.Rule = c.refusal.Rule
		if !c.begun {
			e.Status = c.refusal.Status
		}
	}
	if c.s.Content && c.q != nil {
		e.Request, e.Answer, e.Cut = c.q.body, bytes.Join(c.kept.chunks, nil), c.kept.cut
		if !c.begun && c.refusal != nil {
			e.Answer = c.refusal.body(c.dialect.name)
		}
	}
	c.s.Recorder.Record(e)
}

// kept is an answer as it was given, where somebody wants it later.
type kept struct {
	wanted bool
	whole  bool
	cut    bool
	media  string
	size   int
	chunks [][]byte
}

// maxKept bounds an answer that is kept, in bytes.
const maxKept = 16 << 20

func (k *kept) add(raw []byte) {
	if !k.wanted || k.cut || len(raw) == 0 {
		return
	}
	if k.size += len(raw); k.size > maxKept {
		k.cut = true
		return
	}
	k.chunks = append(k.chunks, bytes.Clone(raw))
}

// with returns what it will be when the rest of an answer was given, too.
func (k kept) with(u *upstream) kept {
	k.chunks, k.media, k.whole = slices.Clip(k.chunks), u.media, true
	k.add(u.body)
	k.add(u.held)
	return k
}

// answer returns what was given, and whether it is whole.
func (k *kept) answer(status int) (cassette.Answer, bool) {
	a := cassette.Answer{Status: status, Type: k.media}
	for _, c := range k.chunks {
		a.Chunks = append(a.Chunks, c)
	}
	return a, k.wanted && k.whole && !k.cut && status < http.StatusBadRequest
}
