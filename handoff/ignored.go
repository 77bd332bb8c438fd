package handoff

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const maxIgnored = 8 // names that are remembered

// ignored are the names of fields that requests had and nobody took.
type ignored struct {
	mu    sync.Mutex
	names map[string]bool
}

// add remembers the fields that are not known.
func (i *ignored) add(f httpwire.Fields, known []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if slices.Contains(known, name) || len(i.names) == maxIgnored {
			continue
		}
		if i.names == nil {
			i.names = map[string]bool{}
		}
		i.names[name] = true
	}
}

// list returns the names as a message shows them; "" for none.
func (i *ignored) list() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var quoted []string
	for _, name := range slices.Sorted(maps.Keys(i.names)) {
		quoted = append(quoted, fault.Quote(name))
	}
	return strings.Join(quoted, ", ")
}
