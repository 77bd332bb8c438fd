// Package access knows who may ask a server for what: scopes, and tokens with names.
//
// A token is 260 random bits. Its holder alone has it: the file of a Tokens has its SHA-256.
// A slow hash, as for passwords, would protect nothing: nobody can try 2^260 tokens.
//
// The main path, in call order:
//
//	Tokens.Add (tokens.go)    makes a token, and stores what is known of it
//	Tokens.Find (tokens.go)   whose token this is; the file counts as it is at that moment
//	Grant.Allows (scope.go)   whether its holder may do something
//	WithGrant (client.go)     has a request's context name the token's holder
//	Sees (client.go)          whether that holder may know of what belongs to somebody
//
// A context that names nobody sees nothing: what the server does itself says so, with WithServer or WithOwner.
//
// It must not know requests, nor what the scopes protect.
package access

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	maxFile   = 1 << 20 // bytes of the file
	maxTokens = 1000
	prefix    = "aod_" // of a token, by which those who look for secrets in texts find it

	// settled is the age at which a file that looks unchanged is: a change sooner than that
	// after another one may leave its time as it was.
	settled = time.Second
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
	Limits
}

// Grant is what its holder may do.
func (t Token) Grant() Grant { return Grant{t.Name, t.Scopes, t.Limits, t.Teams} }

// Tokens are the tokens in a file, which only its owner may read. Several processes may change
// it. It is safe for concurrent use.
type Tokens struct {
	path string

	mu       sync.Mutex
	info     fs.FileInfo // of what was read last; nil: read again
	byDigest map[string]Token
	teams    []string
}

// NewTokens returns the tokens in a file, which need not be there.
func NewTokens(path string) *Tokens { return &Tokens{path: path} }

var nameRule = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// maxTeams bounds the teams of a token.
const maxTeams = 32

// Add makes a token and returns it: nobody can read it again. The error is an Input fault for a
// name, a team or a limit that is none, Conflict for a name that is taken.
func (t *Tokens) Add(g Grant) (token string, err error) {
	if !nameRule().MatchString(g.Name) {
		return "", fault.New(fault.Input, "%s is not a valid token name", fault.Quote(g.Name)).
			WithHint("a name has up to 63 characters of a-z, 0-9, `.`, `_` and `-`, and begins with a letter " +
				"or a digit")
	}
	if len(g.Scopes) == 0 {
		return "", fault.New(fault.Input, "a token without a scope would allow nothing").
			WithHint("add --scope read, run, upload, admin or metrics")
	}
	if len(g.Teams) > maxTeams {
		return "", fault.New(fault.Input, "a token can't be one of more than %d teams", maxTeams)
	}
	err = g.Limits.check()
	for _, team := range g.Teams {
		err = cmp.Or(err, api.CheckTeam(team))
	}
	if err != nil {
		return "", err
	}
	token = prefix + rand.Text() + rand.Text()
	made := Token{
		Name: g.Name, Scopes: g.Scopes, Limits: g.Limits, Teams: g.Teams, SHA256: digest(token),
		Created: time.Now().UTC().Truncate(time.Second),
	}
	return token, t.change(func(all []Token) ([]Token, error) {
		if slices.ContainsFunc(all, func(t Token) bool { return t.Name == g.Name }) {
			return nil, fault.New(fault.Conflict, "there is a token %q", g.Name).
				WithHint("choose another name, or `aod token rm %s` first", g.Name)
		}
		if len(all) >= maxTokens {
			return nil, fault.New(fault.TooLarge, "there are %d tokens, which is the most", len(all)).
				WithHint("remove those that nobody uses")
		}
		return append(all, made), nil
	})
}

// Remove revokes a token. The error is NotFound if there is none of the name.
func (t *Tokens) Remove(name string) error {
	return t.change(func(all []Token) ([]Token, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(t Token) bool { return t.Name == name })
		if len(left) == len(all) {
			return nil, fault.New(fault.NotFound, "there is no token %s", fault.Quote(name)).
				WithHint("`aod token ls` lists them")
		}
		return left, nil
	})
}

// List returns what is stored of each token, the oldest first.
func (t *Tokens) List() ([]Token, error) {
	all, _, err := t.read()
	return all, err
}

// Teams returns the teams that tokens name, but for DefaultTeam. A file that can't be read has none: nobody gets in
// then.
func (t *Tokens) Teams() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refresh() != nil {
		return nil
	}
	return t.teams
}

// Find returns what the holder of a token may do, by the token's SHA-256, and whether there is such a token.
func (t *Tokens) Find(of [sha256.Size]byte) (Grant, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(); err != nil {
		return Grant{}, false, err
	}
	found, ok := t.byDigest[hex.EncodeToString(of[:])]
	return found.Grant(), ok, nil
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
	t.byDigest = make(map[string]Token, len(all))
	for _, token := range all {
		t.byDigest[token.SHA256] = token
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

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
