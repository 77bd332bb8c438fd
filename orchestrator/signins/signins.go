// Package signins knows who has signed in at the page of a server: with a token, or with a code that `aod ui` got for
// one. A browser has a secret in a cookie; what its holder may do is what the token may do at that moment.
//
// It must not know addresses, nor what a token allows.
//
// Its Go API may change with every release: see docs/stability.md.
package signins

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

const (
	lasts     = 12 * time.Hour
	codeLasts = time.Minute
	most      = 10_000 // who is signed in at once; beyond that the oldest are signed out
	mostCodes = 100    // that nobody has used yet
)

// Digest is the SHA-256 of a token.
type Digest = [sha256.Size]byte

// Session is that somebody has signed in.
type Session struct {
	Secret    string // for their browser alone
	ExpiresAt time.Time
}

// Rows keep the sessions.
type Rows interface {
	Add(ctx context.Context, in store.Signin, now time.Time, most int) error
	Get(ctx context.Context, digest []byte) (store.Signin, error)
	Remove(ctx context.Context, digest []byte) error
}

// Registry knows who has signed in. It is safe for concurrent use.
type Registry struct {
	rows   Rows
	server string

	mu    sync.Mutex
	codes map[Digest]code
}

// code lets a browser sign in once.
type code struct {
	token Digest
	until time.Time
}

// New returns the Registry of a server with an id.
func New(rows Rows, server string) *Registry {
	id := sha256.Sum256([]byte(server))
	return &Registry{rows: rows, server: hex.EncodeToString(id[:4]), codes: map[Digest]code{}}
}

// secure is before the name of a cookie that a browser sends by TLS alone.
const secure = "__Secure-"

// name is that of the cookie. Cookies ignore ports, so that it tells this server from others of its host.
func (g *Registry) name() string { return "aod_" + g.server }

// Cookie gives a browser a Session's secret, or takes it back by the empty Session. It has no path: it is good at the
// address that set it and below, whatever stands before that at a proxy. SameSite=Strict would break links in mails.
func (g *Registry) Cookie(of Session, tls bool) *http.Cookie {
	c := &http.Cookie{
		Name: g.name(), Value: of.Secret, Expires: of.ExpiresAt, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
	if tls {
		c.Name, c.Secure = secure+c.Name, true
	}
	if of.Secret == "" {
		c.MaxAge = -1
	}
	return c
}

// SecretOf returns the secret that a request's browser has; "": none.
func (g *Registry) SecretOf(r *http.Request) string {
	for _, name := range []string{secure + g.name(), g.name()} {
		if c, err := r.Cookie(name); err == nil {
			return c.Value
		}
	}
	return ""
}

// Begin signs somebody in with a token, which the caller has found to be good.
func (g *Registry) Begin(ctx context.Context, token string) (Session, error) {
	return g.begin(ctx, sha256.Sum256([]byte(token)))
}

func (g *Registry) begin(ctx context.Context, token Digest) (Session, error) {
	now := time.Now()
	session := Session{Secret: rand.Text() + rand.Text(), ExpiresAt: now.Add(lasts)} // 260 bits
	secret := sha256.Sum256([]byte(session.Secret))
	err := g.rows.Add(ctx, store.Signin{Digest: secret[:], Token: token[:], ExpiresAt: session.ExpiresAt}, now, most)
	return session, err
}

// TokenOf returns the digest of the token with which somebody has signed in, or an Unauthorized fault.
func (g *Registry) TokenOf(ctx context.Context, secret string) (token Digest, err error) {
	digest := sha256.Sum256([]byte(secret))
	row, err := g.rows.Get(ctx, digest[:])
	if fault.Is(err, fault.NotFound) || err == nil && !time.Now().Before(row.ExpiresAt) {
		return token, fault.New(fault.Unauthorized, "nobody is signed in, or their time was up").
			WithHint("sign in again")
	}
	copy(token[:], row.Token)
	return token, err
}

// End signs somebody out.
func (g *Registry) End(ctx context.Context, secret string) error {
	digest := sha256.Sum256([]byte(secret))
	return g.rows.Remove(ctx, digest[:])
}

// Code returns what lets a browser sign in with a token, once and within a minute.
func (g *Registry) Code(token string) (text string, until time.Time, err error) {
	now := time.Now()
	text, until = rand.Text()+rand.Text(), now.Add(codeLasts)
	g.mu.Lock()
	defer g.mu.Unlock()
	for digest, c := range g.codes {
		if !now.Before(c.until) {
			delete(g.codes, digest)
		}
	}
	if len(g.codes) >= mostCodes {
		return "", until, fault.New(fault.Unavailable, "%d codes wait for their browsers", len(g.codes)).
			WithHint("try again in a minute")
	}
	g.codes[sha256.Sum256([]byte(text))] = code{sha256.Sum256([]byte(token)), until}
	return text, until, nil
}

// Redeem signs somebody in by a code. The error is an Unauthorized fault for one that was used, is too old or never
// was.
func (g *Registry) Redeem(ctx context.Context, text string) (Session, error) {
	digest := sha256.Sum256([]byte(text))
	g.mu.Lock()
	c, known := g.codes[digest]
	delete(g.codes, digest)
	g.mu.Unlock()
	if !known || !time.Now().Before(c.until) {
		return Session{}, fault.New(fault.Unauthorized, "this link was used already, or is older than a minute").
			WithHint("run `aod ui` again, or sign in with a token")
	}
	return g.begin(ctx, c.token)
}
