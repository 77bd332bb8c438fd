package handoff

import (
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
)

// tally counts what became of the calls of one caller.
type tally struct {
	mu      sync.Mutex
	made    bool
	refused int
	last    *fault.Error // why
}

// count counts a call that was asked for. Where the server could make none at the moment, it
// doesn't count.
func (t *tally) count(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.made = true
	case isAboutCall(err):
		t.refused++
		t.last = fault.Public(err)
	}
}

// AllRefused returns how many calls the caller asked for, and why the last of them was
// refused, if every one was; else 0.
func (b *Broker) AllRefused() (calls int, last *fault.Error) {
	b.tally.mu.Lock()
	defer b.tally.mu.Unlock()
	if b.tally.made {
		return 0, nil
	}
	return b.tally.refused, b.tally.last
}
