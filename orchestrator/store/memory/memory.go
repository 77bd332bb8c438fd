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

// Journal is a store that is lost with its process. Its methods answer as those of a store.Store.
type Journal struct {
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

// New returns a journal without runs.
func New() *Journal {
	return &Journal{
		runs: map[string]store.Run{}, keys: map[string]store.Taken{},
		steps: map[string]map[stepName]store.Step{},
	}
}

// Insert stores a new run. If the key exists already, the error is a *store.Taken.
func (j *Journal) Insert(_ context.Context, r store.Run, key store.Key, _ ...store.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if taken, there := j.keys[key.Value]; there {
		return &taken
	}
	if key.Value != "" {
		j.keys[key.Value] = store.Taken{Run: r.ID, Fingerprint: key.Fingerprint}
	}
	j.runs[r.ID] = r
	j.ids = append(j.ids, r.ID)
	return nil
}

// Save stores a run anew, or returns a NotFound fault.
func (j *Journal) Save(_ context.Context, r store.Run, _ ...store.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, there := j.runs[r.ID]; !there {
		return unknown(r.ID)
	}
	j.runs[r.ID] = r
	return nil
}

// Append takes events of a run. It keeps nothing: events go to the observer of the run.
func (j *Journal) Append(context.Context, string, ...store.Event) error { return nil }

// AppendOnce is Append for the first with a key. It keeps the key alone.
func (j *Journal) AppendOnce(_ context.Context, key store.Key, run string, _ ...store.Event) (fresh bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if taken, there := j.keys[key.Value]; there {
		if taken.Run == run && taken.Fingerprint == key.Fingerprint {
			return false, nil
		}
		return false, &taken
	}
	j.keys[key.Value] = store.Taken{Run: run, Fingerprint: key.Fingerprint}
	return true, nil
}

// Told returns no events. Nothing is kept, and nobody can say anything to a command's run.
func (j *Journal) Told(context.Context, string, string, int64, int) ([]store.Event, error) {
	return nil, nil
}

// Run returns a run, or a NotFound fault.
func (j *Journal) Run(_ context.Context, id string) (store.Run, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r, there := j.runs[id]; there {
		return r, nil
	}
	return store.Run{}, unknown(id)
}

func unknown(id string) error { return fault.New(fault.NotFound, "there is no run %.64s", id) }

// Runs lists runs by the fields Parent and Root of a filter, newest first.
func (j *Journal) Runs(_ context.Context, f store.Filter) (page store.Page, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range slices.Backward(j.ids) {
		r := j.runs[id]
		if (f.Parent == "" || r.Parent == f.Parent) && (f.Root == "" || r.Root == f.Root) {
			page.Runs = append(page.Runs, r)
		}
	}
	return page, nil
}

// ByKey returns the run that was made with a key, or a NotFound fault.
func (j *Journal) ByKey(_ context.Context, key string) (run, fingerprint string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if taken, there := j.keys[key]; there {
		return taken.Run, taken.Fingerprint, nil
	}
	return "", "", fault.New(fault.NotFound, "no run was made with this key")
}

// SaveSession keeps nothing. There are no sessions but those of single turns, which their runs keep.
func (j *Journal) SaveSession(context.Context, store.Session, string, ...store.Event) error {
	return nil
}

// SaveTurn is Save for the turn of a session.
func (j *Journal) SaveTurn(ctx context.Context, _ store.Session, turn store.Run, events ...store.Event) error {
	return j.Save(ctx, turn, events...)
}

// AddModelCall takes a call of a model. It keeps nothing: no other process restores the run.
func (j *Journal) AddModelCall(context.Context, string, store.ModelCall) (n int64, err error) {
	return 0, nil
}

// SaveModelCall keeps nothing either.
func (j *Journal) SaveModelCall(context.Context, string, store.ModelCall) error { return nil }

// KeepStep keeps a step of a flow.
func (j *Journal) KeepStep(_ context.Context, run string, step store.Step, _ ...store.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.steps[run] == nil {
		j.steps[run] = map[stepName]store.Step{}
	}
	j.changes++
	step.Seq = j.changes
	j.steps[run][stepName{step.Address, step.Try}] = step
	return nil
}

// Steps returns the steps of a run that changed after another change, in that order.
func (j *Journal) Steps(_ context.Context, run string, after int64, limit int) ([]store.Step, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	steps := slices.SortedFunc(maps.Values(j.steps[run]),
		func(a, b store.Step) int { return cmp.Compare(a.Seq, b.Seq) })
	steps = slices.DeleteFunc(steps, func(s store.Step) bool { return s.Seq <= after })
	return steps[:min(limit, len(steps))], nil
}

// StepCounts counts the steps of a run by their state.
func (j *Journal) StepCounts(_ context.Context, run string) (store.StepCounts, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	counts := store.StepCounts{}
	for _, step := range j.steps[run] {
		counts[step.State]++
	}
	return counts, nil
}
