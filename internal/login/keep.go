// Package login has people sign in at the issuers of servers, and keeps for commands what they got there: a file for
// each server, which only its owner may read.
//
// The main path, in call order:
//
//	ByBrowser (signin.go)  somebody signs in at the issuer that a server has named
//	Keep.Put (keep.go)     what the issuer gave is kept
//	Keep.Token (keep.go)   a command has the token; one that is about to end is refreshed, once for all commands
//
// It must not know what the server does with a token.
//
// Its Go API may change with every release: see docs/stability.md.
package login

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/issuer"
	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	maxFile = 256 << 10
	// early is how long before its end a token is refreshed.
	early = time.Minute
	// patience is how long a command waits for another one that refreshes.
	patience = 30 * time.Second
)

// Keep are the sign-ins of a user, in a directory.
type Keep struct{ Dir string }

// Default are those of the user's directory of configurations (XDG Base Directory).
func Default() (Keep, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return Keep{}, fault.Wrap(fault.Unavailable, err, "there is no directory in which a sign-in could be kept").
			WithHint("set HOME or XDG_CONFIG_HOME, or use AOD_TOKEN_FILE")
	}
	return Keep{filepath.Join(dir, "aod", "logins")}, nil
}

// Kept is what is kept of a sign-in.
type Kept struct {
	Server string `json:"server"`
	api.Login
	Token   string    `json:"token"`
	Expires time.Time `json:"expires_at,omitzero"` // zero: the issuer didn't say
	Refresh string    `json:"refresh_token,omitempty"`
}

// Of is what is to be kept of a sign-in at a server. The error is an Unavailable fault where the issuer gave no token
// of the kind that the server takes.
func Of(server string, at api.Login, given issuer.Tokens) (Kept, error) {
	k := Kept{Server: server, Login: at, Refresh: given.Refresh}
	return k, k.take(given)
}

// take has what the issuer gave count from now on.
func (k *Kept) take(given issuer.Tokens) error {
	token, expires := given.Access, given.Expires
	if k.IDToken {
		token, expires = given.ID, endOf(given.ID)
	}
	if token == "" {
		return fault.New(fault.Unavailable, "the issuer gave no token that the server takes").
			WithHint("the scope openid has to be in oidc.login_scopes; or sign in again")
	}
	k.Token, k.Expires = token, expires
	if given.Refresh != "" {
		k.Refresh = given.Refresh
	}
	return nil
}

// endOf reads when a token ends, unchecked: it is for its bearer alone. Zero: it doesn't say.
func endOf(token string) time.Time {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	var claims struct {
		End int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.End == 0 {
		return time.Time{}
	}
	return time.Unix(claims.End, 0)
}

// file is that of a server.
func (k Keep) file(server string) string {
	sum := sha256.Sum256([]byte(normal(server)))
	return filepath.Join(k.Dir, hex.EncodeToString(sum[:8])+".json")
}

// normal has addresses of one server look alike.
func normal(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port + strings.TrimRight(u.Path, "/")
}

// Put keeps a sign-in in the place of an earlier one at its server.
func (k Keep) Put(one Kept) error {
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return k.unwritable(err)
	}
	raw, err := json.Marshal(one) //nolint:gosec // the refresh token is what is kept
	if err == nil {
		err = safefs.Replace(k.file(one.Server), append(raw, '\n'), safefs.ReplaceOptions{Mode: 0o600, Synced: true})
	}
	if err != nil {
		return k.unwritable(err)
	}
	return nil
}

// Remove forgets the sign-in at a server. It returns what was kept of it, as far as that could be read, and whether
// there was one.
func (k Keep) Remove(server string) (one Kept, was bool, err error) {
	one, known, err := k.get(server)
	if err != nil || !known {
		one = Kept{}
	}
	err = os.Remove(k.file(server))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return one, false, nil
	case err != nil:
		return one, false, k.unwritable(err)
	}
	return one, true, safefs.IgnoreMissing(os.Remove(k.file(server) + ".lock"))
}

// GiveBack has the issuer take a sign-in no more, if it gave a refresh token and does that. The error is an Unavailable
// fault.
func (k Kept) GiveBack(ctx context.Context) error {
	if k.Refresh == "" {
		return nil
	}
	door, err := issuer.FindDoor(ctx, k.Login)
	if err != nil {
		return err
	}
	defer door.Close()
	return door.Revoke(ctx, k.Refresh)
}

// get reads the sign-in at a server; known is false where there is none.
func (k Keep) get(server string) (one Kept, known bool, err error) {
	raw, err := safefs.ReadNamed(k.file(server), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return one, false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &one)
	}
	if err != nil {
		return one, true, fault.Wrap(fault.Unavailable, err, "the sign-in at %s can't be read", server).
			WithHint("sign in again: `aod login --server %s`", server)
	}
	return one, normal(one.Server) == normal(server), nil
}

// Token returns the token with which somebody has signed in at a server, refreshed if it is about to end; "" where
// nobody has. The error is an Unauthorized fault where they have to sign in again.
func (k Keep) Token(ctx context.Context, server string) (token string, err error) {
	one, known, err := k.get(server)
	if err != nil || !known {
		return "", err
	}
	if one.lasts(early) {
		return one.Token, nil
	}
	lock, err := safefs.AwaitLock(k.file(server)+".lock", patience)
	if err != nil {
		return "", k.unwritable(err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if one, known, err = k.get(server); err != nil || !known || one.lasts(early) { // another command has refreshed it
		return one.Token, err
	}
	err = k.refresh(ctx, &one)
	if err != nil && one.lasts(0) { // it is good for a while
		return one.Token, nil
	}
	return one.Token, err
}

// lasts reports whether a token is good for so much longer. One that doesn't say when it ends is, as far as is known.
func (k Kept) lasts(more time.Duration) bool {
	return k.Expires.IsZero() || time.Now().Add(more).Before(k.Expires)
}

// refresh asks the issuer for a new token, and keeps it.
func (k Keep) refresh(ctx context.Context, one *Kept) error {
	again := func(err error) error {
		return fault.Wrap(fault.Unauthorized, err, "the sign-in at %s is over", one.Server).
			WithHint("sign in again: `aod login --server %s`", one.Server)
	}
	if one.Refresh == "" {
		return again(errors.New("the issuer gave no refresh token"))
	}
	door, err := issuer.FindDoor(ctx, one.Login)
	if err != nil {
		return err
	}
	defer door.Close()
	given, err := door.Refresh(ctx, one.Refresh)
	if fault.Is(err, fault.Unauthorized) {
		return again(err)
	}
	if err == nil {
		err = one.take(given)
	}
	if err != nil {
		return err
	}
	return k.Put(*one)
}

func (k Keep) unwritable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the sign-in can't be kept in %s", k.Dir).
		WithHint("is the directory yours, and is there room on its disk?")
}
