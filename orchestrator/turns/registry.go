package turns

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// maxOpen is how many sessions a server has at most.
const maxOpen = 1000

// Options are what sessions need of who leads their turns.
type Options struct {
	Kinds  run.Kinds                           // of the units
	Ends   func(run.Conversant) run.Conversant // what ends sessions wherever they are; nil: they are all here
	Living int                                 // how many containers may live on between turns
	Dir    func(id string) string              // has the files of a session; of "", those of all
	Save   func(row store.Session) error       // stores a session; its error is the end of the process
	Cancel func(run, reason string)            // cancels a turn, unless that has ended
	Logger *slog.Logger
}

// Registry has the sessions that aren't over. It is safe for concurrent use.
type Registry struct {
	opts Options

	mu    sync.Mutex // guards the sessions, too
	known map[string]*Session
	// How many sessions of teams and tokens may be open, by their names; 0 and none are no bound.
	teams, tokens map[string]int

	over  bool           // the process ends: nothing idle is ended any more
	rests sync.WaitGroup // of idle ones that are being ended
	moved pause.Notifier // of turns that are over, and of containers that have ended
}

// New returns a Registry without sessions.
func New(opts Options) *Registry {
	return &Registry{opts: opts, known: map[string]*Session{}}
}

// Conversation returns how the sessions of a unit live. Its error is a fault of one that has
// none.
func (r *Registry) Conversation(u *unit.Unit) (run.Conversant, run.SessionTerms, error) {
	kind, err := r.opts.Kinds.Of(u)
	if err != nil {
		return nil, run.SessionTerms{}, err
	}
	talks, ok := kind.(run.Conversant)
	if !ok {
		return nil, run.SessionTerms{}, errNoSessions(u.Name)
	}
	terms, has, err := talks.Conversation(u)
	if err == nil && !has {
		err = errNoSessions(u.Name)
	}
	if r.opts.Ends != nil {
		talks = r.opts.Ends(talks)
	}
	return talks, terms, err
}

// Begin takes a new session in. Of too many the error is a Busy fault.
func (r *Registry) Begin(row store.Session, kind run.Conversant, terms run.SessionTerms) (*Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxOpen {
		return nil, fault.New(fault.Busy, "%d sessions are open already", len(r.known)).WithHint("%s", endSome)
	}
	for _, b := range []struct {
		kind, name string
		most       int
		is         func(store.Session) bool
	}{
		{"team", row.Team, r.teams[row.Team], ofTeam(row.Team)},
		{"token", row.MadeBy, r.tokens[row.MadeBy], ofToken(row.MadeBy)},
	} {
		if b.most > 0 && r.open(b.is) >= b.most {
			return nil, fault.New(fault.Busy, "the %s %s has %d sessions open, which is the most (%ss.%s.sessions)",
				b.kind, b.name, b.most, b.kind, b.name).WithHint("%s", endSome)
		}
	}
	return r.add(&Session{registry: r, row: row, kind: kind, terms: terms}), nil
}

const endSome = "end some that nobody needs: `aod agent sessions` lists them, `aod agent sessions close ID` ends one"

// SetBounds bounds how many sessions of teams and of tokens may be open, by their names, from now on; 0 and none are no
// bound.
func (r *Registry) SetBounds(teams, tokens map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.teams, r.tokens = teams, tokens
}

func ofTeam(team string) func(store.Session) bool {
	return func(row store.Session) bool { return cmp.Or(row.Team, access.DefaultTeam) == team }
}

func ofToken(token string) func(store.Session) bool {
	return func(row store.Session) bool { return row.MadeBy == token }
}

// OfTeam counts the sessions of a team that aren't closed.
func (r *Registry) OfTeam(name string) int { return r.Open(ofTeam(name)) }

// OfToken counts the sessions that were begun with a token and aren't closed.
func (r *Registry) OfToken(name string) int { return r.Open(ofToken(name)) }

// Open counts the sessions that aren't closed, of those that are chosen.
func (r *Registry) Open(chosen func(store.Session) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open(chosen)
}

// open is Open for who holds the lock.
func (r *Registry) open(chosen func(store.Session) bool) (n int) {
	for _, s := range r.known {
		if !s.row.Closed && chosen(s.row) {
			n++
		}
	}
	return n
}

// Restore takes in a session of an earlier process. With an error it can't go on: GoOn closes it.
func (r *Registry) Restore(row store.Session, kind run.Conversant, terms run.SessionTerms, err error) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.add(&Session{registry: r, row: row, kind: kind, terms: terms})
	s.live = terms.Idle > 0 && row.Turns > 0 // as far as this process knows
	if err != nil && !row.Closed {
		s.close("its version of the unit is gone")
		r.opts.Logger.Warn("session can't go on", "session", row.ID, fault.LogAttr(err))
	}
	return s
}

func (r *Registry) add(s *Session) *Session {
	r.known[s.row.ID] = s
	return s
}

// Remove forgets a session, which nobody has used or which is over.
func (r *Registry) Remove(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, s.row.ID)
}

// Find returns a session, or nil if there is none or it is over.
func (r *Registry) Find(id string) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[id]
}

// All returns the sessions as they are now.
func (r *Registry) All() []*Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.known))
}

// OpenOf counts the sessions with a unit that aren't closed.
func (r *Registry) OpenOf(ctx context.Context, unit string) int {
	return r.Open(func(row store.Session) bool { return row.Unit == unit && sees(ctx, row) })
}

// OpenByTeam counts the sessions that aren't closed, by the teams that have any.
func (r *Registry) OpenByTeam() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := map[string]int{}
	for _, s := range r.known {
		if !s.row.Closed {
			open[cmp.Or(s.row.Team, access.DefaultTeam)]++
		}
	}
	return open
}

// Show returns a stored session as clients see it.
func (r *Registry) Show(row store.Session) api.Session {
	shown := api.Session{
		ID: row.ID, Unit: row.Unit, Version: row.Version, By: row.MadeBy, Owner: api.OwnerOf(row.Team, row.MadeBy),
		State: api.SessionOpen, Reason: row.Reason,
		Turns:     row.Turns,
		CreatedAt: row.CreatedAt, UsedAt: row.UsedAt,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.known[row.ID]; s != nil {
		shown.Live, shown.UsedAt = s.live, s.row.UsedAt
		if len(s.turns) > 0 {
			shown.State = api.SessionBusy
		}
	}
	if row.Closed {
		shown.State = api.SessionClosed
	}
	return shown
}

// GoOn has the restored sessions end their containers when it is time, and closes those that
// can't go on.
func (r *Registry) GoOn() {
	for _, s := range r.All() {
		row, turns := s.now()
		switch {
		case !row.Closed:
			s.awaitIdle()
		case len(turns) == 0:
			s.Close(row.Reason)
		}
	}
}

// CloseUnused closes the sessions that nobody has used since a time.
func (r *Registry) CloseUnused(before time.Time, reason string) {
	for _, s := range r.All() {
		if row, turns := s.now(); len(turns) == 0 && row.UsedAt.Before(before) {
			s.Close(reason)
		}
	}
}

// RemoveStrays removes the directories that no session has.
func (r *Registry) RemoveStrays() error {
	entries, err := os.ReadDir(r.opts.Dir(""))
	err = safefs.IgnoreMissing(err)
	for _, entry := range entries {
		if r.Find(entry.Name()) == nil {
			err = errors.Join(err, safefs.RemoveTree(r.opts.Dir(entry.Name())))
		}
	}
	return err
}

// Stop has no idle container end any more, and waits for those that are ending.
func (r *Registry) Stop() {
	r.mu.Lock()
	r.over = true
	for _, s := range r.known {
		s.stopIdle()
	}
	r.mu.Unlock()
	r.rests.Wait()
}
