package access

import (
	"context"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Keeper manages the tokens that an administrator may manage: one of the server all, one of teams those that are of no
// other team. Of others it says what it says of none.
type Keeper struct {
	tokens *Tokens
	by     Grant
}

// maxOfTeam bounds the tokens that an administrator of teams has made, so that there is room for those of others.
const maxOfTeam = 200

// KeeperFor returns the Keeper for the client of ctx, who has the scope Admin.
func (t *Tokens) KeeperFor(ctx context.Context) Keeper { return Keeper{t, GrantOf(ctx)} }

// List returns the tokens, the oldest first.
func (k Keeper) List() ([]Token, error) {
	all, err := k.tokens.List()
	return slices.DeleteFunc(all, func(t Token) bool { return !k.by.manages(t.Grant()) }), err
}

// Get returns what is stored of a token, or a NotFound fault.
func (k Keeper) Get(name string) (Token, error) {
	all, err := k.tokens.stored()
	if err != nil {
		return Token{}, err
	}
	i := slices.IndexFunc(all, func(t Token) bool { return t.Name == name })
	if i < 0 {
		return Token{}, unknownToken(name)
	}
	return all[i], k.manages(all[i])
}

// Add is Tokens.Add. What isn't said is as the administrator has it; the error is a Forbidden fault for what that
// doesn't have.
func (k Keeper) Add(g Grant) (token string, err error) {
	g = k.by.given(g)
	if err := g.check(time.Now()); err != nil {
		return "", err
	}
	if err := k.by.gives(g); err != nil {
		return "", err
	}
	all, err := k.List()
	if err != nil {
		return "", err
	}
	if !k.by.OfServer() && len(all) >= maxOfTeam {
		return "", fault.New(fault.TooLarge, "your teams have %d tokens, which is the most", len(all)).
			WithHint("remove those that nobody uses, or ask the operator of the server")
	}
	return k.tokens.Add(g)
}

// Rotate is Tokens.Rotate. The error is a Forbidden fault for a token that has what the administrator doesn't have.
func (k Keeper) Rotate(name string, grace time.Duration) (token string, err error) {
	return k.tokens.rotate(name, grace, func(t Token) error {
		if err := k.manages(t); err != nil {
			return err
		}
		return k.by.gives(t.Grant())
	})
}

// Remove is Tokens.Remove.
func (k Keeper) Remove(name string) error { return k.tokens.remove(name, k.manages) }

// manages returns a NotFound fault for a token that the administrator may not know of, and a Conflict fault for a
// worker's.
func (k Keeper) manages(t Token) error {
	if !k.by.manages(t.Grant()) {
		return unknownToken(t.Name)
	}
	return notWorkers(t)
}
