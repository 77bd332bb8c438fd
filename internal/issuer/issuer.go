// Package issuer takes an issuer of OpenID Connect at its word about people: who bears a token of it, and who has signed
// in there.
//
// The main path, in call order:
//
//	Issuer.Bearer (bearer.go)        whose a token is, if it is one of the issuer for this server
//	Issuer.now (issuer.go)           what the issuer says of itself: where it is asked, and its keys
//	known.VerifySignature (keys.go)  one of those has signed the token
//	Rules.Grant (rules.go)           what a person may do, by the claims about them
//	Issuer.Begin, Issuer.End (signin.go)  a browser is sent to the issuer, and comes back with a code for tokens
//
// Nothing is asked before it is needed. The issuer is hostile only as far as it may be ill: answers are bounded in bytes
// and time, and however many tokens are wrong, it is asked again only now and then.
//
// It must not know requests, nor what a scope protects.
package issuer

import (
	"context"
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
	return &Issuer{
		opts: opts, client: newClient(opts.URL), logger: opts.Logger, ends: make(chan struct{}, maxEnds),
		turn: make(chan struct{}, 1),
	}
}

// Grant returns what a person may do now. The errors are Unauthorized faults for a person of another issuer, and
// Forbidden for one of no team or without a scope.
func (i *Issuer) Grant(p Person) (grant Grant, err error) {
	if p.Issuer != i.opts.URL {
		return grant, fault.New(fault.Unauthorized, "who signed in is of an issuer that this server doesn't know any more").
			WithHint("sign in again")
	}
	return i.opts.Rules.Grant(p)
}

// Login is what a client needs to have people sign in.
func (i *Issuer) Login() api.Login {
	return api.Login{
		Issuer: i.opts.URL, ClientID: i.opts.ClientID, Scopes: i.opts.Scopes,
		IDToken: i.opts.Audience == i.opts.ClientID,
	}
}

// now returns what the issuer says of itself, if that is as it is wanted; else it asks, unless it did just now. What
// there is is returned, then, with the reason for which it isn't newer.
func (i *Issuer) now(ctx context.Context, wanted func(*known) bool) (*known, error) {
	if k := i.last.Load(); k != nil && wanted(k) {
		return k, nil
	}
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if k := i.last.Load(); k != nil && wanted(k) { // somebody else has asked
		return k, nil
	}
	if time.Now().Before(i.next) {
		return i.last.Load(), i.lost
	}
	k, err := i.ask(context.WithoutCancel(ctx)) // others wait for it, too
	i.lost = err
	if err != nil {
		i.wait = min(max(2*i.wait, askPause), mostPause)
		i.next = time.Now().Add(i.wait)
		i.logger.WarnContext(ctx, "issuer of sign-ins doesn't answer", "retry_ms", i.wait.Milliseconds(), fault.LogAttr(err))
		return i.last.Load(), err
	}
	i.wait, i.next = 0, time.Now().Add(askPause)
	i.last.Store(k)
	return k, nil
}

// fresh reports whether what is known is still taken as it is.
func (k *known) fresh() bool { return time.Since(k.at) < keysLast }

// usable is what is known, where the issuer may not have answered; or its fault.
func usable(k *known, err error) (*known, error) {
	if k == nil || err != nil && time.Since(k.at) >= keysStand {
		return nil, err
	}
	return k, nil
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
