// Package signins knows who has signed in at the page of a server: with a token, at an issuer of OpenID Connect, or
// with a code that `aod ui` got for one of those. A browser has a secret in a cookie; what its holder may do is what
// the token or the person may do at that moment.
//
// It must not know addresses, nor what a token or a person may do.
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
	// visitLasts is how long somebody may take to sign in at an issuer.
	visitLasts = 10 * time.Minute
	most       = 10_000 // who is signed in at once; beyond that the oldest are signed out
	mostCodes  = 100    // that nobody has used yet
)

// Digest is the SHA-256 of a token.
type Digest = [sha256.Size]byte

// Proof is with what somebody has signed in.
type Proof struct {
	Token  Digest
	Person []byte    // what an issuer has told of them, in the place of a token; never as long as that
	Until  time.Time // when the session ends at the latest; zero: it lasts as long as any
}

// ByToken is the Proof of whoever has a token.
func ByToken(token string) Proof { return Proof{Token: sha256.Sum256([]byte(token))} }

// text is what is stored of a proof.
func (p Proof) text() []byte {
	if p.Person != nil {
		return p.Person
	}
	return p.Token[:]
}

// proofOf reads what text has written.
func proofOf(text []byte) (p Proof) {
	if len(text) == sha256.Size {
		p.Token = Digest(text)
		return p
	}
	p.Person = text
	return p
}

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
	proof Proof
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
	return cookie(g.name(), of.Secret, of.ExpiresAt, tls)
}

func cookie(name, value string, until time.Time, tls bool) *http.Cookie {
	c := &http.Cookie{Name: name, Value: value, Expires: until, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if tls {
		c.Name, c.Secure = secure+c.Name, true
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// visit is after the name of the cookie of a visit.
const visit = "_visit"

// VisitCookie has a browser keep what it needs when it comes back from an issuer, or takes it back by "".
func (g *Registry) VisitCookie(value string, tls bool) *http.Cookie {
	return cookie(g.name()+visit, value, time.Now().Add(visitLasts), tls)
}

// VisitOf returns what a request's browser has kept for that; "": nothing.
func (g *Registry) VisitOf(r *http.Request) string { return valueOf(r, g.name()+visit) }

// SecretOf returns the secret that a request's browser has; "": none.
func (g *Registry) SecretOf(r *http.Request) string { return valueOf(r, g.name()) }

func valueOf(r *http.Request, name string) string {
	for _, name := range []string{secure + name, name} {
		if c, err := r.Cookie(name); err == nil {
			return c.Value
		}
	}
	return ""
}

// Begin signs somebody in with a proof, which the caller has found to be good.
func (g *Registry) Begin(ctx context.Context, proof Proof) (Session, error) {
	now := time.Now()
	session := Session{Secret: rand.Text() + rand.Text(), ExpiresAt: now.Add(lasts)} // 260 bits
	if !proof.Until.IsZero() && proof.Until.Before(session.ExpiresAt) {
		session.ExpiresAt = proof.Until
	}
	secret := sha256.Sum256([]byte(session.Secret))
	in := store.Signin{Digest: secret[:], Proof: proof.text(), ExpiresAt: session.ExpiresAt}
	return session, g.rows.Add(ctx, in, now, most)
}

// ProofOf returns with what somebody has signed in, or an Unauthorized fault.
func (g *Registry) ProofOf(ctx context.Context, secret string) (Proof, error) {
	digest := sha256.Sum256([]byte(secret))
	row, err := g.rows.Get(ctx, digest[:])
	if fault.Is(err, fault.NotFound) || err == nil && !time.Now().Before(row.ExpiresAt) {
		return Proof{}, fault.New(fault.Unauthorized, "nobody is signed in, or their time was up").
			WithHint("sign in again")
	}
	return proofOf(row.Proof), err
}

// End signs somebody out.
func (g *Registry) End(ctx context.Context, secret string) error {
	digest := sha256.Sum256([]byte(secret))
	return g.rows.Remove(ctx, digest[:])
}

// Code returns what lets a browser sign in with a proof, once and within a minute.
func (g *Registry) Code(proof Proof) (text string, until time.Time, err error) {
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
	g.codes[sha256.Sum256([]byte(text))] = code{proof, until}
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
	return g.Begin(ctx, c.proof)
}
