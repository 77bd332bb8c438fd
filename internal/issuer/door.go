package issuer

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// offline is the scope by which an issuer gives a refresh token.
const offline = "offline_access"

// Door is where an issuer lets people in as a client of it.
type Door struct {
	config oauth2.Config
	client *http.Client
	revoke string // where tokens are given back; "": nowhere
	lasts  bool   // a refresh token is wanted
}

// maxInterval is how many seconds pass at most before it is asked again whether somebody has signed in.
const maxInterval = 60

// Tokens are what an issuer gives to whoever has signed in.
type Tokens struct {
	Access, ID, Refresh string    // "": it gave none
	Expires             time.Time // of the access token; zero: it didn't say
}

// FindDoor asks the issuer of a server where people sign in. The error is an Unavailable fault.
func FindDoor(ctx context.Context, login api.Login) (*Door, error) {
	client := newClient(login.Issuer)
	says, err := discover(ctx, client, login.Issuer)
	if err != nil {
		return nil, unanswered(err)
	}
	door := newDoor(client, says, oauth2.Config{ClientID: login.ClientID, Scopes: login.Scopes})
	door.lasts = true
	return door, nil
}

func newDoor(client *http.Client, says Says, config oauth2.Config) *Door {
	config.Endpoint = oauth2.Endpoint{AuthURL: says.Auth, TokenURL: says.Token, DeviceAuthURL: says.Device}
	if config.ClientSecret == "" { // who has none says so, and not by an empty one
		config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &Door{config: config, client: client, revoke: says.Revoke}
}

// Close lets go of the connections to the issuer.
func (d *Door) Close() { d.client.CloseIdleConnections() }

// Visit is one way through the door. All that proves it comes from a secret, which whoever begins it keeps.
type Visit struct {
	secret   string
	redirect string
}

// NewSecret makes the secret of a visit.
func NewSecret() string { return rand.Text() + rand.Text() }

// VisitBy is the visit with a secret, which comes back at an address.
func VisitBy(secret, redirect string) Visit { return Visit{secret, redirect} }

// State is what comes back with the code.
func (v Visit) State() string { return v.derived("state") }

// nonce is in the ID token, so that it is one of this visit.
func (v Visit) nonce() string { return v.derived("nonce") }

// verifier proves that whoever has the code has begun the visit (PKCE).
func (v Visit) verifier() string { return v.derived("verifier") }

func (v Visit) derived(what string) string {
	sum := sha256.Sum256([]byte(what + " " + v.secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func (d *Door) at(v Visit) *oauth2.Config {
	config := d.config
	config.RedirectURL = v.redirect
	return &config
}

// Address is where a browser begins a visit.
func (d *Door) Address(v Visit) string {
	asks := []oauth2.AuthCodeOption{
		oauth2.S256ChallengeOption(v.verifier()), oauth2.SetAuthURLParam("nonce", v.nonce()),
	}
	if d.lasts {
		asks = append(asks, oauth2.AccessTypeOffline) // as Google has it
	}
	return d.at(v).AuthCodeURL(v.State(), asks...)
}

// Redeem returns what the issuer gives for the code of a visit.
func (d *Door) Redeem(ctx context.Context, code string, v Visit) (Tokens, error) {
	given, err := d.at(v).Exchange(d.in(ctx), code, oauth2.VerifierOption(v.verifier()))
	return tokensOf(given, err)
}

// Refresh returns what the issuer gives for a refresh token.
func (d *Door) Refresh(ctx context.Context, refresh string) (Tokens, error) {
	given, err := d.config.TokenSource(d.in(ctx), &oauth2.Token{RefreshToken: refresh}).Token()
	return tokensOf(given, err)
}

// Revoke has the issuer take a refresh token no more (RFC 7009), if that is something it does. The error is an
// Unavailable fault.
func (d *Door) Revoke(ctx context.Context, refresh string) error {
	if d.revoke == "" {
		return nil
	}
	form := url.Values{
		"token": {refresh}, "token_type_hint": {"refresh_token"}, "client_id": {d.config.ClientID},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.revoke, strings.NewReader(form.Encode()))
	if err != nil {
		return unanswered(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := d.client.Do(request)
	if err != nil {
		return unanswered(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return unanswered(errors.New(answer.Status))
	}
	return nil
}

// Device signs somebody in who has a browser elsewhere: show tells them where to give which code. It waits for them
// until ctx ends, or the issuer has enough.
func (d *Door) Device(ctx context.Context, show func(address, code string)) (Tokens, error) {
	if d.config.Endpoint.DeviceAuthURL == "" {
		return Tokens{}, fault.New(fault.Unsupported, "the issuer signs nobody in without a browser here").
			WithHint("leave out --device, or use a token: `aod token add`")
	}
	asked, err := d.config.DeviceAuth(d.in(ctx))
	if err != nil {
		return tokensOf(nil, err)
	}
	asked.Interval = min(max(asked.Interval, 1), maxInterval)
	show(asked.VerificationURI, asked.UserCode)
	given, err := d.config.DeviceAccessToken(d.in(ctx), asked)
	return tokensOf(given, err)
}

func (d *Door) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, d.client)
}

// tokensOf reads what an issuer gave. The errors are Unauthorized faults for what it refuses, Unavailable ones for no
// answer.
func tokensOf(given *oauth2.Token, err error) (Tokens, error) {
	if refusal := (*oauth2.RetrieveError)(nil); errors.As(err, &refusal) && refusal.ErrorCode != "" {
		return Tokens{}, fault.New(fault.Unauthorized, "the issuer refuses it: %s", fault.Quote(refusal.ErrorCode)).
			WithHint("sign in again; invalid_client is a matter of the operator's setting `oidc`")
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Tokens{}, err
	case errors.Is(err, context.DeadlineExceeded):
		return Tokens{}, fault.New(fault.Deadline, "nobody has signed in, or the issuer takes too long").
			WithHint("try again")
	case err != nil:
		return Tokens{}, unanswered(errors.New("it gave no token")) // the error may have what it said
	}
	tokens := Tokens{Access: given.AccessToken, Refresh: given.RefreshToken, Expires: given.Expiry}
	tokens.ID, _ = given.Extra("id_token").(string)
	return tokens, nil
}
