package worker

import (
	"context"
	"math"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// mostRecent is how many units are remembered, for the pool.
const mostRecent = 64

// recent are the units that were run here last, the newest last.
type recent struct {
	mu    sync.Mutex
	units []*unit.Unit
}

func (r *recent) note(u *unit.Unit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := []*unit.Unit{}
	for _, other := range r.units {
		if other.Name != u.Name {
			kept = append(kept, other)
		}
	}
	if kept = append(kept, u); len(kept) > mostRecent {
		kept = kept[1:]
	}
	r.units = kept
}

func (r *recent) all() []*unit.Unit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*unit.Unit(nil), r.units...)
}

// world implements run.World for the kind: it has the units that were run here.
type world struct{ *Worker }

// Units implements run.World.
func (w world) Units(context.Context) []*unit.Unit { return w.recent.all() }

// Unit implements run.World.
func (w world) Unit(_ context.Context, name string) (*unit.Unit, error) {
	for _, u := range w.recent.all() {
		if u.Name == name {
			return u, nil
		}
	}
	return nil, fault.New(fault.NotFound, "no unit %q was run here", name)
}

// Busy implements run.World: what waits, waits at the server.
func (w world) Busy() (running int, waiting map[string]int) { return len(w.all()), nil }

// Room implements run.World.
func (w world) Room() int64 {
	if w.memory == 0 {
		return math.MaxInt64
	}
	left := w.memory
	for _, h := range w.all() {
		if a := h.now().Assignment; a != nil {
			left -= a.Limits.MemoryBytes
		}
	}
	return left
}
