package store

import (
	"encoding/json"
	"sync"
)

// Waiting is what of a run waits to be stored with what is stored next. Nobody was told of it, and
// nothing has followed from it: after a kill the next process does the same again.
type Waiting struct {
	Row     *Run // in a state that it passed into; nil: it is stored as it is
	Events  []Event
	Session json.RawMessage // what a turn has left of its session; nil: nothing waits
}

// Deferred has what waits of one run. It is safe for concurrent use: the program of a session may be told something
// by another goroutine than that which leads the run. The zero value has nothing.
type Deferred struct {
	mu      sync.Mutex
	waiting Waiting
}

// Add has something wait beside what waits already.
func (d *Deferred) Add(w Waiting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting.Events = append(d.waiting.Events, w.Events...)
	if w.Row != nil {
		d.waiting.Row = w.Row
	}
	if w.Session != nil {
		d.waiting.Session = w.Session
	}
}

// Take returns what waits. The caller stores it.
func (d *Deferred) Take() Waiting {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.waiting
	d.waiting = Waiting{}
	return w
}
