package issuer

import (
	"context"
	"crypto/subtle"
	"net/url"
	"slices"

	"golang.org/x/oauth2"

	"github.com/agent-on-demand/aod/api/fault"
)

// maxEnds is how many codes are redeemed at once: who asks for more is told to come again.
const maxEnds = 16

// Host is where the issuer is, for people.
func (i *Issuer) Host() string {
	u, err := url.Parse(i.opts.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Begin returns where a browser begins a visit of the page. The error is an Unavailable fault.
func (i *Issuer) Begin(ctx context.Context, v Visit) (address string, err error) {
	door, err := i.door(ctx)
	if err != nil {
		return "", err
	}
	return door.Address(v), nil
}

// End returns who comes back from a visit with a code. The errors are Unauthorized and Unavailable faults.
func (i *Issuer) End(ctx context.Context, code string, v Visit) (p Person, err error) {
	select {
	case i.ends <- struct{}{}:
		defer func() { <-i.ends }()
	default:
		return p, fault.New(fault.Unavailable, "too many sign in at this moment").WithHint("try again")
	}
	door, err := i.door(ctx)
	if err != nil {
		return p, err
	}
	given, err := door.Redeem(ctx, code, v)
	if err != nil {
		return p, err
	}
	if p, err = i.personOf(ctx, given.ID, i.opts.PageClient); err != nil {
		return Person{}, err
	}
	if subtle.ConstantTimeCompare([]byte(p.nonce), []byte(v.nonce())) != 1 {
		return Person{}, refused(nil, "it is of another sign-in")
	}
	return p, nil
}

// door is that of the page. It asks for nothing that lasts: the session does.
func (i *Issuer) door(ctx context.Context) (*Door, error) {
	says, err := i.now(ctx, "")
	if err != nil {
		return nil, err
	}
	config := oauth2.Config{ClientID: i.opts.PageClient}
	config.Scopes = slices.DeleteFunc(slices.Clone(i.opts.Scopes), func(s string) bool { return s == offline })
	if i.opts.Secret != nil {
		secret, err := i.opts.Secret()
		if err != nil {
			return nil, err
		}
		config.ClientSecret = string(secret)
	}
	return newDoor(i.client, says.Says, config), nil
}
