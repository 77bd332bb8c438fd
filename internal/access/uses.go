package access

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// usesEvery is how often it is written down which tokens were used, at most: a crash loses as much.
const usesEvery = time.Minute

// uses knows when each token was used last, to the minute. It is in memory, and now and then in a file of its own: the
// server that counts requests never writes the tokens' file.
type uses struct {
	path string

	read    sync.Once
	mu      sync.Mutex
	at      map[string]time.Time // by the names of tokens
	changed bool
}

// usesFile is the name of the file beside that of the tokens.
func usesFile(tokens string) string { return strings.TrimSuffix(tokens, ".json") + "-used.json" }

func newUses(tokens string) *uses { return &uses{path: usesFile(tokens), at: map[string]time.Time{}} }

// load reads the file once. One that is missing or damaged says nothing: it is for people to look at.
func (u *uses) load() {
	u.read.Do(func() {
		var kept usesDocument
		raw, err := safefs.ReadNamed(u.path, maxFile)
		if err == nil && json.Unmarshal(raw, &kept) == nil && kept.Used != nil {
			u.at = kept.Used
		}
	})
}

// usesDocument is the content of the file.
type usesDocument struct {
	Used map[string]time.Time `json:"used"`
}

func (u *uses) note(name string, now time.Time) {
	now = now.UTC().Truncate(usesEvery)
	u.load()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.at[name].Equal(now) {
		u.at[name], u.changed = now, true
	}
}

// last returns when a token was used last. An earlier one of its name doesn't count.
func (u *uses) last(t Token) time.Time {
	u.load()
	u.mu.Lock()
	defer u.mu.Unlock()
	if at := u.at[t.Name]; !at.Before(t.Created.Truncate(usesEvery)) {
		return at
	}
	return time.Time{}
}

// keep writes what has changed until ctx ends, and then once more.
func (u *uses) keep(ctx context.Context, known func() ([]Token, error), logger *slog.Logger) {
	clock := time.NewTicker(usesEvery)
	defer clock.Stop()
	for over := false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-clock.C:
		}
		if err := u.write(known); err != nil {
			logger.WarnContext(ctx, "last uses of tokens not written", fault.LogAttr(err))
		}
	}
}

// write writes what has changed, without the tokens that there are no more.
func (u *uses) write(known func() ([]Token, error)) error {
	u.mu.Lock()
	changed := u.changed
	u.mu.Unlock()
	if !changed {
		return nil
	}
	all, err := known()
	if err != nil {
		return err
	}
	raw, err := u.dropped(all)
	if err == nil {
		err = safefs.Replace(u.path, raw, safefs.ReplaceOptions{Mode: 0o600})
	}
	if err != nil {
		u.mu.Lock()
		u.changed = true
		u.mu.Unlock()
	}
	return err
}

// maxUsers is of how many people it is kept when they asked last.
const maxUsers = 10_000

// dropped forgets the tokens that there are no more, and people whom others have followed, and returns what is to be
// written of the others.
func (u *uses) dropped(all []Token) ([]byte, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	kept := make(map[string]time.Time, len(all))
	for _, t := range all {
		if at, used := u.at[t.Name]; used {
			kept[t.Name] = at
		}
	}
	for _, name := range u.lastUsers() {
		kept[name] = u.at[name]
	}
	u.at, u.changed = kept, false
	raw, err := json.MarshalIndent(usesDocument{kept}, "", "  ")
	return append(raw, '\n'), err
}

// lastUsers are the people who asked last.
func (u *uses) lastUsers() []string {
	users := slices.DeleteFunc(slices.Collect(maps.Keys(u.at)), func(name string) bool { return !api.IsUser(name) })
	slices.SortFunc(users, func(a, b string) int { return u.at[b].Compare(u.at[a]) })
	return users[:min(len(users), maxUsers)]
}
