package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/gateway/live"
	"github.com/agent-on-demand/aod/handoff/gateway/translate"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

const (
	typeEvents = "text/event-stream"
	maxError   = 1 << 20 // bytes of an error of a provider
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
	ear    Ear          // nil: nobody hears it before the run does
	heard  *live.Words  // for the ear

	provider string
	said     *translated       // how it was asked in another dialect; nil: it wasn't
	stream   *translate.Stream // back into the asker's

	source io.ReadCloser
	watch  *httpwire.Silence
	whole  *time.Timer // ends all of it; nil: nothing does
	leave  func()      // the provider's gate
	extra  func()      // memory of a large plain answer
}

func (u *upstream) stop() {
	if u.whole != nil {
		u.whole.Stop()
	}
	u.watch.Stop(nil)
	if u.ear != nil {
		u.ear.Close()
	}
}

// event reads an event of a stream, and has the ear hear what it says.
func (u *upstream) event(raw []byte) what {
	kind := u.meter.event(raw)
	if u.ear == nil || kind != content || u.quotesKey(raw) {
		return kind
	}
	for _, piece := range u.heard.Next(eventData(raw)) {
		u.ear.Hear(piece)
	}
	return kind
}

func (u *upstream) close() {
	u.stop()
	u.source.Close()
	if u.leave != nil {
		u.leave()
	}
	if u.extra != nil {
		u.extra()
	}
}

// quotesKey reports whether a text has the key of the provider in it, also escaped.
func (u *upstream) quotesKey(text []byte) bool {
	return u.key.CanBeFound() && u.key.In(text) // a shorter one guards nothing, and may be a word
}

// begin reads a plain answer whole, and a stream up to its first real event: until then
// another attempt may be made.
func (a *attempt) begin(request context.Context, u *upstream, from io.Reader) *failure {
	if u.status < 200 || u.status > 299 {
		return a.refused(u, from)
	}
	coding := u.header.Get("Content-Encoding")
	switch {
	case coding != "" && coding != "identity" || u.media != typeJSON && u.media != typeEvents:
		return failed502(another, RuleProvider, "the provider %s answers with something else than a model's answer",
			a.name()).
			hint("whoever runs this server can check the provider's base_url").bill()
	case u.media == typeJSON:
		return a.readPlain(request, u, from)
	case !a.q.stream:
		return a.gather(request, u, from)
	}
	return a.readHead(request, u, from)
}

// broken is the failure of an answer that ended too early.
func (a *attempt) broken(request context.Context, err error) *failure {
	if errors.Is(context.Cause(request), httpwire.ErrSilent) {
		return silent(a.name())
	}
	return failed502(same, RuleProvider, "the answer of the provider %s broke off", a.name()).hint("ask again").
		because(err).bill()
}

// smallAnswer is what a plain answer may have without asking for memory, in bytes.
const smallAnswer = 1 << 20

func (a *attempt) readPlain(request context.Context, u *upstream, from io.Reader) *failure {
	body, err := io.ReadAll(io.LimitReader(from, smallAnswer))
	if err == nil && len(body) == smallAnswer {
		var rest []byte
		if u.extra, err = bytegate.Hold(request, maxBody); err == nil {
			rest, err = io.ReadAll(httpwire.NewBody(from, maxBody-smallAnswer))
		}
		body = append(body, rest...)
	}
	if err != nil {
		return a.unread(request, err)
	}
	if u.quotesKey(body) {
		return quotedKey(a.name())
	}
	if strictjson.Check(body, strictjson.Rules{Ambiguous: true, Unbounded: true}) != nil {
		return failed502(another, RuleProvider, "the answer of the provider %s isn't JSON", a.name()).
			hint("whoever runs this server can check the provider's base_url").bill()
	}
	u.body = body
	u.meter.plain(body)
	return a.checkPlain(u)
}

// unread is the failure of an answer that couldn't be read to its end.
func (a *attempt) unread(request context.Context, err error) *failure {
	if fault.Is(err, fault.Unavailable) { // memory
		return &failure{refusal: refusalOf(err), next: nobody, billed: true}
	}
	return a.broken(request, err)
}

// checkPlain finds the failure of a plain answer that is none.
func (a *attempt) checkPlain(u *upstream) *failure {
	if problemIn(u.body) != nil || !u.meter.isAnswer(u.body) {
		return withNext(a.failedWithin(u, u.body), another).counted(&u.meter)
	}
	return a.answerBack(u)
}

func (a *attempt) readHead(request context.Context, u *upstream, from io.Reader) *failure {
	u.events = newEventReader(from)
	if u.said != nil {
		u.stream = u.said.to.Stream()
	}
	for {
		raw, kind, err := u.next()
		var untold *Refusal
		if errors.As(err, &untold) {
			return (&failure{refusal: untold, next: another, billed: true}).counted(&u.meter)
		}
		if err != nil || len(u.head) > maxEvent {
			return a.broken(request, errors.Join(err, errors.New("nothing came before")))
		}
		if f := a.judge(u, raw, kind); f != nil {
			return f
		}
		if kind > opening {
			u.held, u.kind = raw, kind
			return nil
		}
		u.head = append(u.head, raw...)
	}
}

// judge reads an event of an answer of which the run has nothing yet.
func (a *attempt) judge(u *upstream, raw []byte, kind what) *failure {
	switch {
	case u.quotesKey(raw):
		return quotedKey(a.name())
	case kind == failed:
		return a.failedWithin(u, bytes.Clone(eventData(raw))).counted(&u.meter)
	}
	return nil
}

// gather makes a plain answer of a stream that was asked for because somebody hears it.
func (a *attempt) gather(request context.Context, u *upstream, from io.Reader) *failure {
	events, answer := newEventReader(from), live.NewAnswer(a.q.dialect.name)
	for kind := nothing; kind != terminal; {
		raw, err := events.next()
		if errors.Is(err, io.EOF) && u.meter.ended {
			break
		}
		if err == nil && answer.Size() > smallAnswer && u.extra == nil {
			u.extra, err = bytegate.Hold(request, maxBody)
		}
		if err == nil && answer.Size() > maxBody {
			err = errors.New("the answer is larger than 32 MiB")
		}
		if err != nil {
			return a.unread(request, err)
		}
		kind = u.event(raw)
		if f := a.judge(u, raw, kind); f != nil {
			return f
		}
		answer.Add(eventData(raw))
	}
	u.media, u.body = typeJSON, answer.Body()
	return a.checkPlain(u)
}

// refused is the failure of an answer with another status.
func (a *attempt) refused(u *upstream, from io.Reader) *failure {
	body, _ := io.ReadAll(io.LimitReader(from, maxError)) // what there is of it
	switch {
	case u.status == http.StatusUnauthorized, u.status == http.StatusForbidden:
		return badKey("the provider %s doesn't take the key", a.name())
	case u.status == http.StatusTooManyRequests, u.status == http.StatusServiceUnavailable:
		return limited(a.name(), u, body).says(u.words(body))
	case u.status == http.StatusRequestTimeout, u.status == http.StatusConflict, u.status >= 500:
		return down(a.name(), u.status).says(u.words(body)).leftAlone(u.header)
	case u.status < http.StatusBadRequest, u.status == http.StatusPaymentRequired:
		return withNext(down(a.name(), u.status), another).says(u.words(body))
	}
	if u.quotesKey(body) || strictjson.Check(body, strictjson.Rules{Ambiguous: true, Unbounded: true}) != nil {
		body = nil
	}
	return a.refusedWith(u, u.status, body)
}

// failedWithin is the failure of an answer of the status 200 that is an error: all of it, or a stream's
// first event.
func (a *attempt) failedWithin(u *upstream, data []byte) *failure {
	problem := errorOf(data)
	code := member(problem, "code")
	why := textOf(member(problem, "type")) + " " + strings.Trim(string(code), `"`)
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(why, w) })
	}
	var f *failure
	switch {
	case says("authentication", "permission", "api_key", " 401", " 403"):
		return badKey("the provider %s doesn't take the key", a.name())
	case says("insufficient_quota", "billing"):
		f = withNext(down(a.name(), http.StatusTooManyRequests), another)
	case says("rate_limit", " 429"):
		f = overRate(a.name())
	case says("invalid_request", "context_length", "not_found"):
		if u.quotesKey(data) {
			data = nil
		} else if !isNull(member(data, "response", "error")) { // which no client looks for in an answer
			data = slices.Concat([]byte(`{"error":`), problem, []byte(`}`))
		}
		return a.refusedWith(u, http.StatusBadRequest, data)
	case isNull(problem):
		f = failed502(same, RuleProvider, "the provider %s gives an answer with nothing in it", a.name()).
			hint("ask again")
	default:
		f = failed502(same, RuleProvider, "the provider %s answers with an error", a.name()).hint("ask again later")
	}
	return f.says(u.words(data))
}

// errorOf is the error in an answer, or in the one that an event of a stream holds.
func errorOf(data []byte) []byte {
	if problem := problemIn(data); problem != nil {
		return problem
	}
	return member(data, "response", "error")
}

// maxWords bounds what is shown of a provider's own words, in bytes.
const maxWords = 400

// likeKey is what may be a key, or a part of one that a provider quotes.
var likeKey = lazyregexp.New(`(?i)\b(?:(?:sk|pk|gsk|xai|key)[-_]|bearer |AIza)[a-z0-9_.*-]{6,}`)

// words are those with which a provider says what is wrong, "" where it says nothing that can be shown.
func (u *upstream) words(body []byte) string {
	text := string(body)
	if strictjson.Check(body, strictjson.Rules{Ambiguous: true, Unbounded: true}) == nil {
		problem := errorOf(body)
		text = cmp.Or(textOf(member(problem, "message")), textOf(problem), textOf(member(body, "message")),
			textOf(member(body, "detail")))
	} else if u.media != "text/plain" {
		return ""
	}
	if u.quotesKey(body) {
		return ""
	}
	return strings.TrimSpace(fault.Clip(fault.OneLine(likeKey().ReplaceAllString(text, "[key]")), maxWords))
}
