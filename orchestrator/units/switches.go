package units

import (
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// Switches know which units the operator has switched off or on. The zero value knows none.
type Switches struct {
	changing sync.Mutex // one change at a time

	mu  sync.Mutex
	off map[string]bool // by unit
}

// Check returns a Disabled fault for a unit that is switched off.
func (s *Switches) Check(u *unit.Unit) error {
	if !s.isOff(u.Name, u.Policy.Disabled) {
		return nil
	}
	refused := fault.New(fault.Disabled, "the unit %q is switched off", u.Name)
	if u.Policy.Disabled {
		return refused.WithHint("its agent.yaml says enabled: false; on a server the operator switches it on all the "+
			"same with `aod units enable %s`", u.Name)
	}
	return refused.WithHint("the operator switches it on with `aod units enable %s`", u.Name)
}

// isOff reports what the operator said last of a unit, or else what the unit itself says.
func (s *Switches) isOff(name string, own bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if off, said := s.off[name]; said {
		return off
	}
	return own
}

func (s *Switches) set(off map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = off
}
