package access

import (
	"cmp"
	"context"
)

// client is who asks, in the context of a request.
type client struct {
	name   string // of the token; "" for the server's own
	scopes []Scope
	all    bool // it sees what others made
	runs   int  // the most that go on at once; 0: no bound
}

// clientKey is its key.
type clientKey struct{}

// WithGrant returns a context of a request whose client has a grant: the grant's name is the By of
// what is made with it, and Sees goes by its scopes. The empty grant is that of a client without a
// token, where none is needed.
func WithGrant(ctx context.Context, g Grant) context.Context {
	return context.WithValue(ctx, clientKey{}, client{g.Name, g.Scopes, g.Allows(Read) == nil, g.Limits.Runs})
}

// WithClient returns a context of what the server itself does for the holder of the token of this
// name, such as a run that a schedule starts: the name is the By of what is made with it, and Sees
// allows all. "" has no name.
func WithClient(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, clientKey{}, client{name: name, all: true})
}

func clientOf(ctx context.Context) client {
	if c, known := ctx.Value(clientKey{}).(client); known {
		return c
	}
	return client{all: true} // the server itself, or everybody where nobody needs a token
}

// ClientOf returns the name of the token of a context's client, or "".
func ClientOf(ctx context.Context) string { return clientOf(ctx).name }

// May reports whether a context's client has a scope. Where nobody needs a token, everybody has them all.
func May(ctx context.Context, scope Scope) bool {
	c, known := ctx.Value(clientKey{}).(client)
	return !known || Grant{Scopes: c.scopes}.Allows(scope) == nil
}

// MostRuns returns how many runs that a context's client asked for may go on at once; 0: there is no bound.
func MostRuns(ctx context.Context) int { return clientOf(ctx).runs }

// IsAnonymous reports whether the context is that of a client who needed no token, and has none.
func IsAnonymous(ctx context.Context) bool {
	c := clientOf(ctx)
	return !c.all && len(c.scopes) == 0
}

// Sees reports whether a context's client may know of what was made with the token of a name: with
// the scope read of everything, else of its own alone.
func Sees(ctx context.Context, by string) bool {
	c := clientOf(ctx)
	return c.all || by == c.name && by != ""
}

// nobody is the name of no token.
const nobody = "-"

// OnlyOwn returns the name of the token whose things alone a context's client sees; "": it sees
// everything.
func OnlyOwn(ctx context.Context) string {
	c := clientOf(ctx)
	if c.all {
		return ""
	}
	return cmp.Or(c.name, nobody)
}
