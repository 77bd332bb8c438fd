package units

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
)

// callersFresh is how long is believed who calls whom: to look at every file of every unit takes milliseconds.
const callersFresh = 5 * time.Second

// callers know which units may call which. The zero value knows none.
type callers struct {
	mu   sync.Mutex
	read time.Time // zero: never, or something has changed
	of   map[string][]*unit.Unit
}

// callersOf returns the names of the units that may call one.
func (c *Catalogue) callersOf(ctx context.Context, name string) (names []string, err error) {
	k := &c.callers
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.read.IsZero() || time.Since(k.read) > callersFresh {
		all, err := c.Usable(access.WithServer(ctx))
		if err != nil {
			return nil, err
		}
		k.read, k.of = time.Now(), map[string][]*unit.Unit{}
		for _, u := range all {
			for _, callee := range u.Policy.Grants {
				k.of[callee] = append(k.of[callee], u)
			}
		}
	}
	for _, u := range k.of[name] {
		if c.names.isShown(ctx, u) && !slices.Contains(names, u.Name) {
			names = append(names, u.Name)
		}
	}
	return names, nil
}

// forget has the units looked at again, as one of them has changed.
func (k *callers) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read = time.Time{}
}
