package issuer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

const (
	maxToken = 16 << 10    // bytes
	skew     = time.Minute // by which the issuer's clock may be ahead of ours
)

// IsToken reports whether a text can be a token of an issuer: a JWT has three parts with dots between them.
func IsToken(text string) bool { return strings.Count(text, ".") == 2 }

// Bearer returns whose a token is. The errors are Unauthorized faults, and Unavailable where the issuer's keys can't be
// had.
func (i *Issuer) Bearer(ctx context.Context, token string) (Person, error) {
	return i.personOf(ctx, token, i.opts.Audience)
}

// personOf is Bearer for a token for somebody.
func (i *Issuer) personOf(ctx context.Context, token, audience string) (p Person, err error) {
	t, err := i.verified(ctx, token, audience)
	if err != nil {
		return p, err
	}
	var claims map[string]any
	if err := t.Claims(&claims); err != nil {
		return p, refused(err, "it can't be read")
	}
	if err := checkTimes(t.Expiry, claims); err != nil {
		return p, err
	}
	if _, ok := api.UserOf(t.Subject); !ok {
		return p, refused(nil, "its subject isn't up to 255 visible characters of ASCII")
	}
	p = i.opts.Claims.of(claims)
	p.Issuer, p.Subject, p.Until, p.nonce = i.opts.URL, t.Subject, t.Expiry, t.Nonce
	return p, nil
}

// verified returns a token for somebody that the issuer has signed.
func (i *Issuer) verified(ctx context.Context, token, audience string) (*oidc.IDToken, error) {
	if len(token) > maxToken {
		return nil, refused(nil, "it has more than 16 KiB")
	}
	parsed, err := jose.ParseSignedCompact(token, signed)
	if err != nil {
		return nil, refused(err, "it can't be read, or isn't signed by an algorithm that counts")
	}
	keys, err := i.now(ctx, parsed.Signatures[0].Header.KeyID)
	if err != nil {
		return nil, err
	}
	config := &oidc.Config{ClientID: audience, SkipExpiryCheck: true} // checkTimes has it
	for _, algorithm := range signed {
		config.SupportedSigningAlgs = append(config.SupportedSigningAlgs, string(algorithm))
	}
	t, err := oidc.NewVerifier(i.opts.URL, keys, config).Verify(ctx, token)
	if err != nil {
		return nil, refused(err, "the issuer hasn't signed it, or it is for somebody else")
	}
	return t, nil
}

// checkTimes returns an Unauthorized fault for a token that isn't good now.
func checkTimes(end time.Time, claims map[string]any) error {
	now := time.Now()
	if !now.Before(end) {
		return refused(nil, "it expired at "+end.UTC().Format(time.RFC3339))
	}
	for _, name := range []string{"nbf", "iat"} {
		if at, ok := claims[name].(float64); ok && at > float64(now.Add(skew).Unix()) {
			return refused(nil, "it isn't good yet by this server's clock")
		}
	}
	return nil
}

// refused is the fault of a token that is none for this server.
func refused(err error, why string) error {
	err = errors.Join(err)
	f := fault.New(fault.Unauthorized, "the token is none of the issuer for this server: %s", why)
	if err != nil {
		f = fault.Wrap(fault.Unauthorized, err, "the token is none of the issuer for this server: %s", why)
	}
	return f.WithHint("sign in again: `aod login`")
}

// valuesOf are the texts of a claim: one, or a list of them. The claim is named by itself, or by those that it is in,
// with dots between them.
func valuesOf(claims map[string]any, name string) (values []string) {
	if name == "" {
		return nil
	}
	switch value := claimOf(claims, strings.TrimPrefix(name, "claims.")).(type) {
	case string:
		values = []string{value}
	case []any:
		for _, each := range value {
			if text, ok := each.(string); ok {
				values = append(values, text)
			}
		}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return !api.IsGroup(v) })
	slices.Sort(values)
	return slices.Compact(values)
}

func claimOf(claims map[string]any, name string) any {
	if value, ok := claims[name]; ok { // some have dots in their names
		return value
	}
	for outer, inner, found := strings.Cut(name, "."); found; {
		if deeper, ok := claims[outer].(map[string]any); ok {
			return claimOf(deeper, inner)
		}
		more, rest, again := strings.Cut(inner, ".")
		outer, inner, found = outer+"."+more, rest, again
	}
	return nil
}
