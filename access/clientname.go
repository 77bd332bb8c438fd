package access

import "context"

// clientName is the key of a client's name in a context.
type clientName struct{}

// WithClient returns a context of a request whose client has a token of this name: it is the By
// of the runs that are accepted with it. "" has no name.
func WithClient(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, clientName{}, name)
}

// ClientOf returns the name that WithClient gave a context, or "".
func ClientOf(ctx context.Context) string {
	name, _ := ctx.Value(clientName{}).(string)
	return name
}
