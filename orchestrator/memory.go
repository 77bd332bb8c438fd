package orchestrator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/store"
)

// memory is a journal that is lost with its process.
type memory struct {
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

func newMemory() *memory {
	return &memory{runs: map[string]store.Run{}, keys: map[string]store.Taken{}, steps: map[string]map[stepName]store.Step{}}
}

// Insert implements journal. If the key exists already, the error is a *store.Taken.
func (m *memory) Insert(_ context.Context, r store.Run, key store.Key, _ ...store.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if taken, there := m.keys[key.Value]; there {
		return &taken
	}
	if key.Value != "" {
		m.keys[key.Value] = store.Taken{Run: r.ID, Fingerprint: key.Fingerprint}
	}
	m.runs[r.ID] = r
	m.ids = append(m.ids, r.ID)
	return nil
}

// Save implements journal.
func (m *memory) Save(_ context.Context, r store.Run, _ ...store.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.runs[r.ID]; !there {
		return unknown(r.ID)
	}
	m.runs[r.ID] = r
	return nil
}

// Append implements journal. It keeps nothing: events go to the observer of the run.
func (m *memory) Append(context.Context, string, ...store.Event) error { return nil }

// AppendOnce implements journal. It keeps the key alone.
func (m *memory) AppendOnce(_ context.Context, key store.Key, run string, _ ...store.Event) (fresh bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if taken, there := m.keys[key.Value]; there {
		if taken.Run == run && taken.Fingerprint == key.Fingerprint {
			return false, nil
		}
		return false, &taken
	}
	m.keys[key.Value] = store.Taken{Run: run, Fingerprint: key.Fingerprint}
	return true, nil
}

// Told implements journal. Nothing is kept, and nobody can say anything to a command's run.
func (m *memory) Told(context.Context, string, string, int64, int) ([]store.Event, error) {
	return nil, nil
}

// Run implements journal.
func (m *memory) Run(_ context.Context, id string) (store.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, there := m.runs[id]; there {
		return r, nil
	}
	return store.Run{}, unknown(id)
}

func unknown(id string) error { return fault.New(fault.NotFound, "there is no run %.64s", id) }

// Runs implements journal for the fields Parent and Root of a filter, newest first.
func (m *memory) Runs(_ context.Context, f store.Filter) (page store.Page, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Backward(m.ids) {
		r := m.runs[id]
		if (f.Parent == "" || r.Parent == f.Parent) && (f.Root == "" || r.Root == f.Root) {
			page.Runs = append(page.Runs, r)
		}
	}
	return page, nil
}

// ByKey implements journal.
func (m *memory) ByKey(_ context.Context, key string) (run, fingerprint string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if taken, there := m.keys[key]; there {
		return taken.Run, taken.Fingerprint, nil
	}
	return "", "", fault.New(fault.NotFound, "no run was made with this key")
}

// SaveSession implements journal. It has no sessions but those of single turns, which their runs keep.
func (m *memory) SaveSession(context.Context, store.Session, string, ...store.Event) error {
	return nil
}

// SaveTurn implements journal.
func (m *memory) SaveTurn(ctx context.Context, _ store.Session, turn store.Run, events ...store.Event) error {
	return m.Save(ctx, turn, events...)
}

// AddModelCall implements journal. It keeps nothing: no other process restores the run.
func (m *memory) AddModelCall(context.Context, string, store.ModelCall) (n int64, err error) {
	return 0, nil
}

// SaveModelCall implements journal.
func (m *memory) SaveModelCall(context.Context, string, store.ModelCall) error { return nil }

// KeepStep implements journal.
func (m *memory) KeepStep(_ context.Context, run string, step store.Step, _ ...store.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steps[run] == nil {
		m.steps[run] = map[stepName]store.Step{}
	}
	m.changes++
	step.Seq = m.changes
	m.steps[run][stepName{step.Address, step.Try}] = step
	return nil
}

// Steps implements journal.
func (m *memory) Steps(_ context.Context, run string, after int64, limit int) ([]store.Step, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	steps := slices.SortedFunc(maps.Values(m.steps[run]), func(a, b store.Step) int { return cmp.Compare(a.Seq, b.Seq) })
	steps = slices.DeleteFunc(steps, func(s store.Step) bool { return s.Seq <= after })
	return steps[:min(limit, len(steps))], nil
}

// StepCounts implements journal.
func (m *memory) StepCounts(_ context.Context, run string) (store.StepCounts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := store.StepCounts{}
	for _, step := range m.steps[run] {
		counts[step.State]++
	}
	return counts, nil
}
