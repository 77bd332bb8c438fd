package httpwire

import "context"

type ownerKey struct{}

// WithOwner returns a context of a request that says who sends it, as far as two can be told apart:
// what goes over several requests belongs to who began it.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// OwnerOf returns what WithOwner gave a context, or "".
func OwnerOf(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}
