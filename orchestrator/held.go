package orchestrator

import (
	"encoding/json"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// waiting is what of a run waits to be stored with what is stored next. Nobody was told of it, and
// nothing has followed from it: after a kill the next process does the same again.
type waiting struct {
	row     *store.Run // in a state that it passed into; nil: it is stored as it is
	events  []store.Event
	session json.RawMessage // what a turn has left of its session; nil: nothing waits
}

// held is what waits. The program of a session may be told something by another goroutine than
// that which leads the run.
type held struct {
	mu sync.Mutex
	waiting
}

// add has something wait beside what waits already.
func (h *held) add(w waiting) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, w.events...)
	if w.row != nil {
		h.row = w.row
	}
	if w.session != nil {
		h.session = w.session
	}
}

// take returns what waits. The caller stores it.
func (h *held) take() waiting {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.waiting
	h.waiting = waiting{}
	return w
}

// Hold implements run.Host.
func (j *job) Hold(transition api.Transition) error {
	row, err := j.row()
	if err != nil {
		return err
	}
	j.held.add(waiting{row: &row, events: j.events(transition)})
	j.pending = nil
	return nil
}
