// Package access knows who may ask a server for what: scopes, and tokens with names.
//
// A token is 260 random bits. Its holder alone has it: the file of a Tokens has its SHA-256.
// A slow hash, as for passwords, would protect nothing: nobody can try 2^260 tokens.
//
// The main path, in call order:
//
//	Keeper.Add (keeper.go)         refuses to give what the giver doesn't have
//	Tokens.Add (tokens.go)         makes a token, and stores what is known of it
//	Tokens.AddWorker (workers.go)  invites a worker, which joins by Tokens.Enrol; nodes of a Swarm by Tokens.Admit
//	Tokens.Find (tokens.go)        whose token this is; the file counts as it is at that moment
//	Grant.Allows (scope.go)        whether its holder may do something
//	WithGrant (client.go)          has a request's context name the token's holder
//	Sees (client.go)               whether that holder may know of what belongs to somebody
//
// A context that names nobody sees nothing: what the server does itself says so, with WithServer or WithOwner.
//
// It must not know requests, nor what the scopes protect.
package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	maxFile   = 8 << 20 // bytes of the file; maxTokens of the largest have room in it
	maxTokens = 1000
	prefix    = "aod_" // of a token, by which those who look for secrets in texts find it

	// settled is the age at which a file that looks unchanged is: a change sooner than that
	// after another one may leave its time as it was.
	settled    = time.Second
	maxGrace   = 30 * 24 * time.Hour
	maxEarlier = 8 // that are still good, of one token
	// lockWait is how long one change of the file waits for another.
	lockWait = 5 * time.Second
)

// Token is what is stored of a token.
type Token struct {
	Name    string    `json:"name"`
	Scopes  []Scope   `json:"scopes"`
	SHA256  string    `json:"sha256"` // of the token, in hexadecimal
	Created time.Time `json:"created_at"`
	Teams   []string  `json:"teams,omitempty"`
	Units   []string  `json:"units,omitempty"`
	Expires time.Time `json:"expires_at,omitzero"`
	Earlier []Earlier `json:"earlier,omitempty"` // that SHA256 has replaced, the newest first
	Limits

	Used time.Time `json:"-"` // when it was used last, to the minute; zero: never, or that isn't known
}

// Earlier is the digest of a token that another one has replaced.
type Earlier struct {
	SHA256 string    `json:"sha256"`
	Until  time.Time `json:"until"` // when it is good for nothing any more
}

// Grant is what its holder may do.
func (t Token) Grant() Grant {
	return Grant{
		Name: t.Name, Scopes: t.Scopes, Limits: t.Limits, Teams: t.Teams, Units: t.Units, Expires: t.Expires,
	}
}

// expired reports whether it is good for nothing any more.
func (t Token) expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// grace returns when the last of the earlier ones is over; zero: they are all.
func (t Token) grace(now time.Time) (until time.Time) {
	for _, e := range t.Earlier {
		if e.Until.After(now) && e.Until.After(until) {
			until = e.Until
		}
	}
	return until
}

// Tokens are the tokens in a file, which only its owner may read. Several processes may change
// it. It is safe for concurrent use.
type Tokens struct {
	path   string
	uses   *uses
	shared *[sha256.Size]byte // of the token of Share; nil: there is none

	mu       sync.Mutex
	info     fs.FileInfo // of what was read last; nil: read again
	byDigest map[string]held
	teams    []string
}

// held is the token that a digest belongs to.
type held struct {
	Token
	until time.Time // of a digest that another one has replaced; zero of the newest
}

// check returns an Unauthorized fault for a digest that is good for nothing any more.
func (h held) check(now time.Time) error {
	switch {
	case h.isWorkers() && h.expired(now):
		return fault.New(fault.Unauthorized, "the invitation of the worker %q expired at %s", h.Name,
			h.Expires.Format(time.RFC3339)).WithHint("`aod worker rm %s`, and invite it again", h.Name)
	case h.expired(now):
		return fault.New(fault.Unauthorized, "the token %q expired at %s", h.Name, h.Expires.Format(time.RFC3339)).
			WithHint("ask for a new one: `aod token add NAME --expires 90d`")
	case !h.until.IsZero() && !now.Before(h.until):
		return fault.New(fault.Unauthorized, "the token %q was rotated, and the earlier one ended at %s", h.Name,
			h.until.Format(time.RFC3339)).WithHint("use the one that `aod token rotate` has printed")
	}
	return nil
}

// NewTokens returns the tokens in a file, which need not be there. When each was used last stands in another one
// beside it.
func NewTokens(path string) *Tokens { return &Tokens{path: path, uses: newUses(path)} }

// Add makes a token and returns it: nobody can read it again. The error is an Input fault for a
// name, a team, a unit, a limit or a time that is none, Conflict for a name that is taken.
func (t *Tokens) Add(g Grant) (token string, err error) {
	now := time.Now()
	if err := g.check(now); err != nil {
		return "", err
	}
	token = NewToken()
	made := Token{
		Name: g.Name, Scopes: g.Scopes, Limits: g.Limits, Teams: g.Teams, Units: g.Units, Expires: g.Expires.UTC(),
		SHA256: digest(token), Created: now.UTC().Truncate(time.Second),
	}
	return token, t.change(func(all []Token) ([]Token, error) { return added(all, made) })
}

// added adds a token to others. The error is a Conflict fault if its name is taken.
func added(all []Token, made Token) ([]Token, error) {
	for _, t := range all {
		if t.Name == made.Name {
			noun := t.noun()
			return nil, fault.New(fault.Conflict, "there is a %s %q", noun, t.Name).
				WithHint("choose another name, or `aod %s rm %s` first", noun, t.Name)
		}
	}
	if len(all) >= maxTokens {
		return nil, fault.New(fault.TooLarge, "there are %d tokens, which is the most", len(all)).
			WithHint("remove those that nobody uses")
	}
	return append(all, made), nil
}

// Rotate makes another token in place of one, with all that it has, and returns it. The earlier one is good until the
// grace is over; without a grace it, and what it has replaced itself, is good for nothing any more. The errors are
// NotFound faults, and Conflict for a token that has expired.
func (t *Tokens) Rotate(name string, grace time.Duration) (token string, err error) {
	return t.rotate(name, grace, notWorkers)
}

// rotate is Rotate for a token that passes a check.
func (t *Tokens) rotate(name string, grace time.Duration, check func(Token) error) (token string, err error) {
	if grace < 0 || grace > maxGrace {
		return "", fault.New(fault.Input, "a grace of %s is out of range", grace).WithHint("name one of 0 to 720h")
	}
	token = NewToken()
	return token, t.change(func(all []Token) ([]Token, error) {
		i := slices.IndexFunc(all, func(t Token) bool { return t.Name == name })
		if i < 0 {
			return nil, unknownToken(name)
		}
		if err := check(all[i]); err != nil {
			return nil, err
		}
		err := all[i].replace(digest(token), grace, time.Now().UTC())
		return all, err
	})
}

// replace has another digest stand for a token.
func (t *Token) replace(by string, grace time.Duration, now time.Time) error {
	if t.expired(now) {
		return fault.New(fault.Conflict, "the token %q has expired", t.Name).
			WithHint("`aod token rm %s`, and make it again with another time", t.Name)
	}
	earlier := []Earlier{{t.SHA256, now.Add(grace)}}
	for _, e := range t.Earlier {
		if !e.Until.After(now) {
			continue
		}
		if grace == 0 {
			e.Until = now // it is kept to be told of
		}
		earlier = append(earlier, e)
	}
	if grace > 0 && len(earlier) > maxEarlier {
		return fault.New(fault.Conflict, "%d earlier ones of the token %q are still good", len(earlier)-1, t.Name).
			WithHint("wait for the end of their graces, or end them all with --grace 0")
	}
	t.SHA256, t.Earlier = by, earlier
	return nil
}

// Remove revokes a token. The error is NotFound if there is none of the name.
func (t *Tokens) Remove(name string) error { return t.remove(name, notWorkers) }

// remove is Remove for a token that passes a check.
func (t *Tokens) remove(name string, check func(Token) error) error {
	return t.change(func(all []Token) ([]Token, error) {
		i := slices.IndexFunc(all, func(t Token) bool { return t.Name == name })
		if i < 0 {
			return nil, unknownToken(name)
		}
		if err := check(all[i]); err != nil {
			return nil, err
		}
		return slices.Delete(all, i, i+1), nil
	})
}

func unknownToken(name string) error {
	return fault.New(fault.NotFound, "there is no token %s", fault.Quote(name)).WithHint("`aod token ls` lists them")
}

// List returns what is stored of each token but for workers', the oldest first, and when it was used last.
func (t *Tokens) List() ([]Token, error) {
	all, err := t.stored()
	return slices.DeleteFunc(all, Token.isWorkers), err
}

// stored is List with those of workers.
func (t *Tokens) stored() ([]Token, error) {
	all, _, err := t.read()
	for i := range all {
		all[i].Used = t.uses.last(all[i])
	}
	return all, err
}

// Met notes that the holder of a grant asks for something. It is written within a minute while KeepUses goes on.
func (t *Tokens) Met(g Grant) {
	if g.Name != "" && g.Name != AnyNode {
		t.uses.note(g.Name, time.Now())
	}
}

// KeepUses writes down which tokens are used, at most once a minute, until ctx ends.
func (t *Tokens) KeepUses(ctx context.Context, logger *slog.Logger) {
	t.uses.keep(ctx, t.stored, logger)
}

// Teams returns the teams that tokens name, but for DefaultTeam; the list is the caller's. A file that can't be read
// has none: nobody gets in then.
func (t *Tokens) Teams() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refresh() != nil {
		return nil
	}
	return slices.Clone(t.teams)
}

// Find returns what the holder of a token may do, by the token's SHA-256, and whether there is such a token. The error
// is an Unauthorized fault for one that has expired, or was replaced and has had its grace.
func (t *Tokens) Find(of [sha256.Size]byte) (Grant, bool, error) {
	if t.isShared(of) {
		return Grant{Name: AnyNode, Scopes: []Scope{Work}}, true, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		return Grant{}, false, err
	}
	found, ok := t.byDigest[hex.EncodeToString(of[:])]
	if !ok {
		return Grant{}, false, nil
	}
	if err := found.check(time.Now()); err != nil {
		return Grant{}, true, err
	}
	return found.Grant(), true, nil
}

// refresh reads the file again if it may have changed.
func (t *Tokens) refresh() error {
	info, err := os.Lstat(t.path)
	if err == nil && t.info != nil && os.SameFile(info, t.info) && info.ModTime().Equal(t.info.ModTime()) &&
		info.Size() == t.info.Size() {
		return nil
	}
	t.info, t.byDigest, t.teams = nil, nil, nil
	all, info, err := t.read()
	if err != nil {
		return err
	}
	t.byDigest = make(map[string]held, len(all))
	for _, token := range all {
		t.byDigest[token.SHA256] = held{Token: token}
		for _, e := range token.Earlier {
			t.byDigest[e.SHA256] = held{token, e.Until}
		}
		for _, team := range token.Teams {
			if team != DefaultTeam && !slices.Contains(t.teams, team) {
				t.teams = append(t.teams, team)
			}
		}
	}
	if info != nil && time.Since(info.ModTime()) > settled {
		t.info = info
	}
	return nil
}

// change replaces the file by what do makes of it, while no other process does.
func (t *Tokens) change(do func([]Token) ([]Token, error)) (err error) {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return t.unwritable(err)
	}
	lock, err := safefs.AwaitLock(t.path+".lock", lockWait)
	if err != nil {
		return t.unwritable(err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	all, _, err := t.read()
	if err != nil {
		return err
	}
	if all, err = do(all); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(document{Tokens: all}, "", "  ")
	if len(raw) >= maxFile { // it couldn't be read again
		return fault.New(fault.TooLarge, "the tokens in %s would take more than %d MiB", t.path, maxFile>>20).
			WithHint("remove those that nobody uses, or give them fewer units and teams")
	}
	if err == nil {
		err = safefs.Replace(t.path, append(raw, '\n'), safefs.ReplaceOptions{Mode: 0o600, Synced: true})
	}
	if err != nil {
		return t.unwritable(err)
	}
	return nil
}

// document is the content of the file.
type document struct {
	Tokens []Token `json:"tokens"`
}

// read reads the file. One that isn't there has no tokens, and no info.
func (t *Tokens) read() ([]Token, fs.FileInfo, error) {
	file, info, err := safefs.OpenNamed(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, t.damaged(err)
	}
	defer file.Close()
	if info.Mode().Perm()&0o077 != 0 {
		return nil, nil, fault.New(fault.Unavailable, "others can read or change the tokens in %s", t.path).
			WithHint("chmod 600 %s", t.path)
	}
	raw, err := safefs.ReadAtMost(file, maxFile)
	var all document
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil, nil, t.damaged(err)
	}
	return all.Tokens, info, nil
}

func (t *Tokens) damaged(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the tokens in %s can't be read", t.path).
		WithHint("bring back an earlier file, or remove it and make new tokens")
}

func (t *Tokens) unwritable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the tokens in %s can't be changed", t.path).
		WithHint("is the data directory yours, and is there room on its disk?")
}

// NewToken returns a token that nobody can guess.
func NewToken() string { return prefix + rand.Text() + rand.Text() }

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
