package access

import (
	"context"
	"sync/atomic"

	"github.com/agent-on-demand/aod/api"
)

// Identities beside that of a token, "token:NAME".
const (
	OperatorIdentity  = "operator"  // who has the server's own token, or a server that asks for none
	AnonymousIdentity = "anonymous" // who needed no token, or has none that is good
)

// Identity returns who the client of ctx is. asked is false for what the server does by itself.
func Identity(ctx context.Context) (identity string, asked bool) {
	c := clientOf(ctx)
	switch {
	case c.trusted:
		return "", false
	case c.grant.Name != "":
		return api.IdentityOf(c.grant.Name), true
	case len(c.grant.Scopes) > 0:
		return OperatorIdentity, true
	}
	return AnonymousIdentity, true
}

// Origin is where a request comes from.
type Origin struct {
	Address string // of the client, or of the proxy before it, without its port
	Trace   string // the id of its trace; "": it has none

	hidden *atomic.Bool // something that is there was denied
	noted  *atomic.Bool // the refusal has a row of its own in the audit
}

// originKey is its key in a context.
type originKey struct{}

// WithOrigin returns a context of a request that comes from somewhere.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	o.hidden, o.noted = &atomic.Bool{}, &atomic.Bool{}
	return context.WithValue(ctx, originKey{}, o)
}

// Hide notes that the request of a context is told that something isn't there because it is somebody else's.
func Hide(ctx context.Context) {
	if o := OriginOf(ctx); o.hidden != nil {
		o.hidden.Store(true)
	}
}

// WasHidden reports whether Hide noted something of the request.
func WasHidden(ctx context.Context) bool {
	o := OriginOf(ctx)
	return o.hidden != nil && o.hidden.Load()
}

// Note notes that the refusal of a context's request is in the audit, by what was asked for.
func Note(ctx context.Context) {
	if o := OriginOf(ctx); o.noted != nil {
		o.noted.Store(true)
	}
}

// WasNoted reports whether Note noted the request's refusal.
func WasNoted(ctx context.Context) bool {
	o := OriginOf(ctx)
	return o.noted != nil && o.noted.Load()
}

// OriginOf returns where the request of a context comes from.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}
