package orchestrator

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/units"
)

// jobs are those of the runs that this process leads. They are safe for concurrent use.
type jobs struct {
	going sync.WaitGroup

	mu       sync.Mutex
	live     map[string]*job
	left     map[string]bool // runs that are the next process's
	closing  bool
	draining bool // calls of live runs are admitted all the same
}

func newJobs() *jobs { return &jobs{live: map[string]*job{}, left: map[string]bool{}} }

// get returns the job of a run, or nil if this process has none for it.
func (s *jobs) get(id string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[id]
}

// awaitGone waits until this process has nothing more to do with a run.
func (s *jobs) awaitGone(ctx context.Context, id string) error {
	live := s.heard(id)
	if live == nil {
		return nil
	}
	select {
	case <-live.Gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// heard is what is heard of a run that this process leads; else nil.
func (s *jobs) heard(id string) *records.Live {
	if j := s.get(id); j != nil {
		return j.live
	}
	return nil
}

// matching returns the jobs that match.
func (s *jobs) matching(match func(*job) bool) []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(s.live)), func(j *job) bool { return !match(j) })
}

// calledBy returns the jobs of the runs that a run has called.
func (s *jobs) calledBy(id string) []*job {
	return s.matching(func(j *job) bool { return j.Lineage.Parent == id })
}

// ofUnit returns the runs of a unit that go on or wait, the oldest first.
func (s *jobs) ofUnit(name string) []units.Live {
	var live []units.Live
	for _, j := range s.matching(func(j *job) bool { return j.Unit.Name == name }) {
		live = append(live, units.Live{ID: j.ID, Owner: j.owner(), Gone: j.live.Gone})
	}
	slices.SortFunc(live, func(a, b units.Live) int { return strings.Compare(a.ID, b.ID) }) // they begin with the time
	return live
}

// inUse adds the versions of units that runs go on with, as name@version, and returns the units of the runs.
func (s *jobs) inUse(versions map[string]bool) (used []*unit.Unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.live {
		versions[j.Record.Unit+"@"+j.Record.Version] = true
		if pinner, pins := j.execution.(run.Pinner); pins {
			for name, version := range pinner.Pinned() {
				versions[name+"@"+version] = true
			}
		}
		if j.Unit.Definition != nil { // else it can't go on after a restart
			used = append(used, j.Unit)
		}
	}
	return used
}

// has reports whether this process has, or had at its end, a job for a run that goes on.
func (s *jobs) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[id] != nil || s.left[id]
}

// leave notes that the next process goes on with a run: a sweep that ends after the run's job
// doesn't take its container for a stray.
func (s *jobs) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[id] = true
}

// admit makes the job of a new run known, so that no sweep takes its files for strays. The error is a Busy fault where
// so many runs of its client go on already; 0 is no bound.
func (s *jobs) admit(j *job, most int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isCall := j.Lineage.Parent != ""; s.closing && (!s.draining || !isCall) {
		return fault.New(fault.Unavailable, "the server is shutting down").WithHint("try again in a moment")
	}
	if by := j.Record.By; most > 0 && s.goingOn(by) >= most {
		return fault.New(fault.Busy, "the token %q may have %d of its runs going on, and has", by, most).
			WithHint("wait for one to end; the operator makes tokens with other limits: `aod token add NAME --runs N`")
	}
	s.add(j)
	return nil
}

// goingOn counts the runs without an outcome that a client asked for itself. The caller holds the lock.
func (s *jobs) goingOn(by string) (n int) {
	for _, j := range s.live {
		if j.Record.By == by && j.Lineage.Parent == "" && !j.live.Outcome.IsSet() {
			n++
		}
	}
	return n
}

// restore makes the job of a run of an earlier process known.
func (s *jobs) restore(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(j)
}

func (s *jobs) add(j *job) {
	s.live[j.ID] = j
	s.going.Add(1)
}

func (s *jobs) remove(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, j.ID)
}

// count returns the number of jobs.
func (s *jobs) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// close ends the admission; with drain not yet that of calls.
func (s *jobs) close(drain bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing, s.draining = true, drain
}

// isClosing reports whether the admission has ended.
func (s *jobs) isClosing() bool { return !s.whileOpen(func() {}) }

// whileOpen calls do, which returns soon, unless the admission has ended. It reports whether it did.
func (s *jobs) whileOpen(do func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		do()
	}
	return !s.closing
}

// cancelOrphans cancels calls whose caller ended while nobody was there to do it.
func (s *jobs) cancelOrphans() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.live {
		if parent := j.Lineage.Parent; parent != "" && (s.live[parent] == nil || s.live[parent].live.Outcome.IsSet()) {
			j.cancel(run.ErrCallerEnded)
		}
	}
}
