// Package issuer takes an issuer of OpenID Connect at its word about people: who bears a token of it, and who has
// signed in there.
//
// The main path, in call order:
//
//	Issuer.Bearer (bearer.go)        whose a token is, if it is one of the issuer for this server
//	Issuer.now (issuer.go)           what the issuer says of itself: where it is asked, and its keys
//	known.VerifySignature (keys.go)  one of those has signed the token
//	Rules.Grant (rules.go)           what a person may do, by the claims about them
//	Issuer.Begin (signin.go)         a browser is sent to the issuer
//	Issuer.End (signin.go)           it comes back with a code, for which the issuer gives a token
//
// Nothing is asked before it is needed. Answers are bounded in bytes and time, and however many tokens are wrong, the
// issuer is asked again only now and then.
//
// It must not know requests, nor what a scope protects.
//
// Its Go API may change with every release: see docs/stability.md.
package issuer

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/secrets"
)

const (
	// keysLast is how long what the issuer said is taken as it is, keysStand how long where it doesn't answer.
	keysLast  = time.Hour
	keysStand = 24 * time.Hour
	// askPause is the least time between two questions; it doubles while there is no answer, up to mostPause.
	askPause  = 10 * time.Second
	mostPause = 2 * time.Minute
)

// Options are what an operator says of an issuer.
type Options struct {
	URL      string // of the issuer, as its tokens have it
	Audience string // for which a token has to be
	ClientID string // as which people sign in by a command
	// PageClient is as which they do at the page, and Secret what it has to show; nil: it has none.
	PageClient string
	Secret     func() (secrets.Secret, error)
	Scopes     []string // that are asked of the issuer when people sign in
	Claims     Claims
	Rules      Rules
	Logger     *slog.Logger // nil: nothing is logged
}

// Issuer is one that a server takes at its word. It is safe for concurrent use.
type Issuer struct {
	opts   Options
	rules  atomic.Pointer[Rules] // Options.Rules, or what Set gave
	client *http.Client
	logger *slog.Logger
	last   atomic.Pointer[known] // nil: it hasn't answered yet

	ends chan struct{} // that are going on

	turn chan struct{} // of who asks the issuer, and of what follows
	next time.Time     // when it may be asked again
	wait time.Duration // between that and the time after it
	lost error         // why there was no answer; nil: there was one
}

// known is what the issuer said of itself.
type known struct {
	Says
	keys []jose.JSONWebKey
	at   time.Time
}

// New returns the Issuer, and asks nothing.
func New(opts Options) *Issuer {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	i := &Issuer{
		opts: opts, client: newClient(opts.URL), logger: opts.Logger, ends: make(chan struct{}, maxEnds),
		turn: make(chan struct{}, 1),
	}
	i.Set(opts.Rules)
	return i
}

// Set has other rules hold of the same claims, from now on.
func (i *Issuer) Set(rules Rules) { i.rules.Store(&rules) }

// Grant returns what a person may do now. The errors are Unauthorized faults for a person of another issuer, and
// Forbidden for one of no team or without a scope.
func (i *Issuer) Grant(p Person) (grant Grant, err error) {
	if p.Issuer != i.opts.URL {
		return grant, fault.New(fault.Unauthorized, "this server doesn't know the issuer of this sign-in any more").
			WithHint("sign in again")
	}
	return i.rules.Load().Grant(p)
}

// Login is what a client needs to have people sign in.
func (i *Issuer) Login() api.Login {
	return api.Login{
		Issuer: i.opts.URL, ClientID: i.opts.ClientID, Scopes: i.opts.Scopes,
		IDToken: i.opts.Audience == i.opts.ClientID,
	}
}

// now returns what the issuer says of itself, with a key of a name, "" any. If it isn't fresh, or has no such key, the
// issuer is asked, unless it was just now: then it returns what it has, or why it has nothing.
func (i *Issuer) now(ctx context.Context, key string) (*known, error) {
	k := i.last.Load()
	if k.fresh() && k.named(key) {
		return k, nil
	}
	if !i.mayAsk(ctx, k.stands() && k.named(key)) {
		return i.last.Load().orLost(context.Cause(ctx))
	}
	defer func() { <-i.turn }()
	if k = i.last.Load(); k.fresh() && k.named(key) || time.Now().Before(i.next) { // somebody else has asked
		return k.orLost(i.lost)
	}
	return i.askAgain(ctx)
}

// mayAsk takes the turn to ask the issuer. Who needn't know doesn't wait for others who ask.
func (i *Issuer) mayAsk(ctx context.Context, needNot bool) bool {
	select {
	case i.turn <- struct{}{}:
		return true
	default:
	}
	if needNot {
		return false
	}
	select {
	case i.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// askAgain asks the issuer, and notes when it may be asked the next time.
func (i *Issuer) askAgain(ctx context.Context) (*known, error) {
	k, err := i.ask(context.WithoutCancel(ctx)) // others wait for it, too
	i.lost = err
	if err != nil {
		i.wait = min(max(2*i.wait, askPause), mostPause)
		i.next = time.Now().Add(i.wait)
		i.logger.WarnContext(ctx, "issuer of sign-ins doesn't answer", "retry_ms", i.wait.Milliseconds(),
			fault.LogAttr(err))
		return i.last.Load().orLost(err)
	}
	i.wait, i.next = 0, time.Now().Add(askPause)
	i.last.Store(k)
	return k, nil
}

// fresh reports whether what is known is taken as it is.
func (k *known) fresh() bool { return k != nil && time.Since(k.at) < keysLast }

// stands reports whether what is known is taken where the issuer doesn't answer.
func (k *known) stands() bool { return k != nil && time.Since(k.at) < keysStand }

// orLost is what is known, or else why it isn't.
func (k *known) orLost(err error) (*known, error) {
	switch {
	case k.stands():
		return k, nil
	case err == nil:
		err = unanswered(errors.New("its last answer is too old"))
	}
	return nil, err
}

// ask asks the issuer what it says of itself. The error is an Unavailable fault.
func (i *Issuer) ask(ctx context.Context) (*known, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var set keySet
	var keys []jose.JSONWebKey
	says, err := discover(ctx, i.client, i.opts.URL)
	if err == nil {
		err = get(ctx, i.client, says.Keys, &set)
	}
	if err == nil {
		keys, err = parseKeys(set)
	}
	if err != nil {
		return nil, unanswered(err)
	}
	return &known{says, keys, time.Now()}, nil
}

// unanswered is the fault of an issuer that doesn't answer as it should.
func unanswered(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the issuer of this server's sign-ins doesn't answer as it should").
		WithHint("try again in a while; the operator finds the reason in the server's log")
}
