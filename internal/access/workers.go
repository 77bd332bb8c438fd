package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// invitation is how long a worker may be joined with the token of AddWorker.
const invitation = day

const workerHint = "a worker's credential comes by `aod worker add NAME`"

var tokenRule = lazyregexp.New(`^` + prefix + `[A-Z2-7]{52}$`)

// OfWorker reports whether a grant is that of a worker, which takes runs and may nothing else.
func (g Grant) OfWorker() bool { return slices.Contains(g.Scopes, Work) }

func (g Grant) allowsWork() error {
	if g.OfWorker() {
		return nil
	}
	return g.lacks(Work).WithHint(workerHint)
}

func (t Token) isWorkers() bool { return t.Grant().OfWorker() }

// noun is what commands call whoever has it.
func (t Token) noun() string {
	if t.isWorkers() {
		return "worker"
	}
	return "token"
}

// notWorkers returns a Conflict fault for a token of a worker.
func notWorkers(t Token) error {
	if !t.isWorkers() {
		return nil
	}
	return fault.New(fault.Conflict, "%q is the name of a worker", t.Name).
		WithHint("`aod worker rm %s` removes the worker with its credential", t.Name)
}

// AddWorker invites a worker: whoever has the token may join as it once, until it expires. The error is an Input fault
// for a name that is none, Conflict for one that a worker or a token has.
func (t *Tokens) AddWorker(name string, now time.Time) (token string, expires time.Time, err error) {
	if !api.IsTokenName(name) {
		return "", time.Time{}, fault.New(fault.Input, "%s is not a valid name of a worker", fault.Quote(name)).
			WithHint(nameHint)
	}
	token, now = NewToken(), now.UTC().Truncate(time.Second)
	made := Token{
		Name: name, Scopes: []Scope{Work}, SHA256: digest(token), Created: now, Expires: now.Add(invitation),
	}
	return token, made.Expires, t.change(func(all []Token) ([]Token, error) { return added(all, made) })
}

// Enrol has a token that a worker has made itself stand in the place of its invitation, or of the one that it had. The
// error is an Input fault for what isn't of the form of NewToken, NotFound for a worker that there isn't, Unauthorized
// for an invitation that has expired, Conflict for a token that somebody else has.
func (t *Tokens) Enrol(name, token string) error {
	if !tokenRule().MatchString(token) {
		return notOfWorker()
	}
	by := digest(token)
	return t.changeWorker(name, func(all []Token, i int) ([]Token, error) {
		if err := (held{Token: all[i]}).check(time.Now()); err != nil {
			return nil, err
		}
		if err := unused(all, Token{Name: name, SHA256: by}); err != nil {
			return nil, err
		}
		all[i].SHA256, all[i].Earlier, all[i].Expires = by, nil, time.Time{}
		return all, nil
	})
}

func notOfWorker() error {
	return fault.New(fault.Input, "this is no token that a worker makes").
		WithHint("have `aod work --join FILE` make it")
}

// unused returns a Conflict fault for a worker whose token somebody else has.
func unused(all []Token, of Token) error {
	for _, other := range all {
		if other.Name != of.Name && other.SHA256 == of.SHA256 {
			return fault.New(fault.Conflict, "the token of the worker %q is that of another one already", of.Name).
				WithHint("a copy of a worker's data directory is no other worker: remove it, and join again")
		}
	}
	return nil
}

// RemoveWorker revokes the invitation or the credential of a worker. The error is NotFound if there is none of the
// name.
func (t *Tokens) RemoveWorker(name string) error {
	return t.changeWorker(name, func(all []Token, i int) ([]Token, error) { return slices.Delete(all, i, i+1), nil })
}

// changeWorker is change for the token of a worker, which is the one at i.
func (t *Tokens) changeWorker(name string, do func(all []Token, i int) ([]Token, error)) error {
	return t.change(func(all []Token) ([]Token, error) {
		i := slices.IndexFunc(all, func(t Token) bool { return t.Name == name && t.isWorkers() })
		if i < 0 {
			return nil, fault.New(fault.NotFound, "there is no worker %s", fault.Quote(name)).
				WithHint("`aod worker ls` lists them")
		}
		return do(all, i)
	})
}

// Workers returns what is stored of each worker, the oldest first, and when it asked for something last. One that
// expires is invited, and has not joined.
func (t *Tokens) Workers() ([]Token, error) {
	all, err := t.stored()
	return slices.DeleteFunc(all, func(t Token) bool { return !t.isWorkers() }), err
}

// AnyNode is the name of whoever has what Share was given: it may enrol as a worker, and nothing else.
const AnyNode = "swarm:node" // no token has such a name

// Share has a token that is in no file be AnyNode's, until the process ends. It is called before the first Find. The
// error is an Input fault for what isn't of the form of NewToken.
func (t *Tokens) Share(token string) error {
	if !tokenRule().MatchString(token) {
		return fault.New(fault.Input, "this is no token to join with").WithHint("`aod worker bundle` makes one")
	}
	sum := sha256.Sum256([]byte(token))
	t.shared = &sum
	return nil
}

// isShared reports whether a digest is that of the token that was shared.
func (t *Tokens) isShared(of [sha256.Size]byte) bool {
	return t.shared != nil && subtle.ConstantTimeCompare(of[:], t.shared[:]) == 1
}

// Admit has a token that a worker has made itself be that of the worker of a name, which need not be there; the one
// that it had is good for nothing any more. The errors are those of Enrol, and Conflict for a name that a token has.
func (t *Tokens) Admit(name, token string) error {
	if !tokenRule().MatchString(token) {
		return notOfWorker()
	}
	made := Token{
		Name: name, Scopes: []Scope{Work}, SHA256: digest(token), Created: time.Now().UTC().Truncate(time.Second),
	}
	return t.change(func(all []Token) ([]Token, error) {
		if err := unused(all, made); err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(t Token) bool { return t.Name == name && t.isWorkers() })
		return added(all, made)
	})
}

// Names are those of all tokens, workers' included.
func (t *Tokens) Names() (names []string, err error) {
	all, err := t.stored()
	for _, token := range all {
		names = append(names, token.Name)
	}
	return names, err
}
