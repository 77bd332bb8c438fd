// Package memory keeps runs as package store does, until its process ends: for commands, whose runs
// end with them. It has what those need of a store. New makes a Journal.
//
// It must not know what a run is.
//
// Its Go API may change with every release: see docs/stability.md.
package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Journal is a store that is lost with its process. Its fields answer as those of a store.Store.
type Journal struct {
	Runs       *Runs
	Events     *Events
	Keys       *Keys
	Steps      *Steps
	Sessions   *Sessions
	ModelCalls *ModelCalls
}

// New returns a journal without runs.
func New() *Journal {
	kept := &rows{
		runs: map[string]store.Run{}, keys: map[string]store.Taken{},
		steps: map[string]map[stepName]store.Step{},
	}
	runs := &Runs{kept}
	return &Journal{
		Runs: runs, Events: &Events{kept}, Keys: &Keys{kept}, Steps: &Steps{kept}, Sessions: &Sessions{runs},
		ModelCalls: &ModelCalls{},
	}
}

// rows are what all nouns of a Journal share.
type rows struct {
	mu      sync.Mutex
	runs    map[string]store.Run
	keys    map[string]store.Taken
	ids     []string                           // of the runs, in the order of their insertion
	steps   map[string]map[stepName]store.Step // by run
	changes int64                              // of steps
}

// stepName names a step within its run.
type stepName struct {
	address string
	try     int
}

// Runs keeps the rows of runs.
type Runs struct{ rows *rows }

// Insert stores a new run. If the key exists already, the error is a *store.Taken.
func (s *Runs) Insert(_ context.Context, r store.Run, key store.Key, _ ...store.Event) error {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	if taken, there := s.rows.keys[key.Value]; there {
		return &taken
	}
	if key.Value != "" {
		s.rows.keys[key.Value] = store.Taken{Run: r.ID, Fingerprint: key.Fingerprint}
	}
	s.rows.runs[r.ID] = r
	s.rows.ids = append(s.rows.ids, r.ID)
	for _, step := range r.Steps {
		s.rows.keep(r.ID, step)
	}
	return nil
}

// Save stores a run anew, or returns a NotFound fault.
func (s *Runs) Save(_ context.Context, r store.Run, _ ...store.Event) error {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	if _, there := s.rows.runs[r.ID]; !there {
		return store.UnknownRun(r.ID)
	}
	s.rows.runs[r.ID] = r
	return nil
}

// Get returns a run, or a NotFound fault.
func (s *Runs) Get(_ context.Context, id string) (store.Run, error) {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	if r, there := s.rows.runs[id]; there {
		return r, nil
	}
	return store.Run{}, store.UnknownRun(id)
}

// List lists runs by the fields Parent and Root of a filter, newest first.
func (s *Runs) List(_ context.Context, f store.Filter) (page store.Page, err error) {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	for _, id := range slices.Backward(s.rows.ids) {
		r := s.rows.runs[id]
		if (f.Parent == "" || r.Parent == f.Parent) && (f.Root == "" || r.Root == f.Root) {
			page.Runs = append(page.Runs, r)
		}
	}
	return page, nil
}

// Tree returns the runs of a tree in the order in which they were made, and how many there are.
func (s *Runs) Tree(_ context.Context, root string, most int) (tree []store.Run, all int64, err error) {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	for _, id := range s.rows.ids {
		if r := s.rows.runs[id]; r.Root == root {
			tree = append(tree, r)
		}
	}
	return tree[:min(most, len(tree))], int64(len(tree)), nil
}

// Events keeps nothing of what is told of runs: events go to the observer of the run.
type Events struct{ rows *rows }

// Append keeps nothing.
func (s *Events) Append(context.Context, string, ...store.Event) error { return nil }

// AppendOnce is Append for the first with a key. It keeps the key alone.
func (s *Events) AppendOnce(_ context.Context, key store.Key, run string, _ ...store.Event) (fresh bool, err error) {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	if taken, there := s.rows.keys[key.Value]; there {
		if taken.Run == run && taken.Fingerprint == key.Fingerprint {
			return false, nil
		}
		return false, &taken
	}
	s.rows.keys[key.Value] = store.Taken{Run: run, Fingerprint: key.Fingerprint}
	return true, nil
}

// Told returns no events. Nothing is kept, and nobody can say anything to a command's run.
func (s *Events) Told(context.Context, string, string, int64, int) ([]store.Event, error) {
	return nil, nil
}

// Keys keeps the keys by which requests are known again.
type Keys struct{ rows *rows }

// Get returns the run that was made with a key, or a NotFound fault.
func (s *Keys) Get(_ context.Context, key string) (run, fingerprint string, err error) {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	if taken, there := s.rows.keys[key]; there {
		return taken.Run, taken.Fingerprint, nil
	}
	return "", "", fault.New(fault.NotFound, "no run was made with this key")
}

// Steps keeps the steps of flows.
type Steps struct{ rows *rows }

// Keep keeps a step of a flow.
func (s *Steps) Keep(_ context.Context, run string, step store.Step, _ ...store.Event) error {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	s.rows.keep(run, step)
	return nil
}

func (r *rows) keep(run string, step store.Step) {
	if r.steps[run] == nil {
		r.steps[run] = map[stepName]store.Step{}
	}
	r.changes++
	step.Seq = r.changes
	r.steps[run][stepName{step.Address, step.Try}] = step
}

// List returns the steps of a run that changed after another change, in that order.
func (s *Steps) List(_ context.Context, run string, after int64, limit int) ([]store.Step, error) {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	steps := slices.SortedFunc(maps.Values(s.rows.steps[run]),
		func(a, b store.Step) int { return cmp.Compare(a.Seq, b.Seq) })
	steps = slices.DeleteFunc(steps, func(step store.Step) bool { return step.Seq <= after })
	return steps[:min(limit, len(steps))], nil
}

// Counts counts the steps of a run by their state.
func (s *Steps) Counts(_ context.Context, run string) (store.StepCounts, error) {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	counts := store.StepCounts{}
	for _, step := range s.rows.steps[run] {
		counts[step.State]++
	}
	return counts, nil
}

// Sessions keeps nothing. There are no sessions but those of single turns, which their runs keep.
type Sessions struct{ runs *Runs }

// Save keeps nothing.
func (s *Sessions) Save(context.Context, store.Session, string, ...store.Event) error {
	return nil
}

// SaveTurn is Save for the turn of a session.
func (s *Sessions) SaveTurn(ctx context.Context, _ store.Session, turn store.Run, events ...store.Event) error {
	return s.runs.Save(ctx, turn, events...)
}

// ModelCalls keeps no books: no other process restores a run.
type ModelCalls struct{}

// Add keeps nothing.
func (s *ModelCalls) Add(context.Context, string, store.ModelCall) (n int64, err error) {
	return 0, nil
}

// Save keeps nothing either.
func (s *ModelCalls) Save(context.Context, string, store.ModelCall) error { return nil }
