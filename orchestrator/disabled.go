package orchestrator

import (
	"context"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// switches know which units the operator has switched off or on. The zero value knows none.
type switches struct {
	changing sync.Mutex // one change at a time

	mu  sync.Mutex
	off map[string]bool // by unit
}

// check returns a Disabled fault for a unit that is switched off.
func (s *switches) check(u *unit.Unit) error {
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
func (s *switches) isOff(name string, own bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if off, said := s.off[name]; said {
		return off
	}
	return own
}

func (s *switches) set(off map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = off
}

// DisableUnit switches a unit off: a run of it that isn't accepted yet is refused with a
// Disabled fault. It stays off when the server is started again. Runs that go on or wait aren't
// touched.
func (s *Service) DisableUnit(ctx context.Context, name string) (api.Unit, error) {
	return s.switchUnit(ctx, name, func() error { return s.store.DisableUnit(ctx, name, time.Now().UTC()) })
}

// EnableUnit switches a unit on, whatever its directory says.
func (s *Service) EnableUnit(ctx context.Context, name string) (api.Unit, error) {
	return s.switchUnit(ctx, name, func() error { return s.store.EnableUnit(ctx, name) })
}

func (s *Service) switchUnit(ctx context.Context, name string, stored func() error) (api.Unit, error) {
	if err := s.admits(ctx); err != nil {
		return api.Unit{}, err
	}
	if _, err := s.units.Get(ctx, name); err != nil {
		return api.Unit{}, err
	}
	s.switches.changing.Lock()
	defer s.switches.changing.Unlock()
	if err := stored(); err != nil {
		return api.Unit{}, err
	}
	if err := s.readSwitches(ctx); err != nil {
		return api.Unit{}, err
	}
	return s.Unit(ctx, name)
}

func (s *Service) readSwitches(ctx context.Context) error {
	off, err := s.store.SwitchedUnits(ctx)
	if err == nil {
		s.switches.set(off)
	}
	return err
}

// statusOf tells what goes on with a unit. It counts up to 1000 runs.
func (s *Service) statusOf(ctx context.Context, name string) (*api.UnitStatus, error) {
	status := &api.UnitStatus{Sessions: s.sessions.OpenOf(name), Next: s.schedules.NextOf(name)}
	err := s.eachRun(ctx, store.Filter{Unit: name, Unfinished: true}, 1000, func(row store.Run) {
		if row.State == string(api.Idle) {
			status.Waiting++
		} else {
			status.Running++
		}
	})
	if err != nil {
		return nil, err
	}
	last, err := s.store.Runs(ctx, store.Filter{Unit: name, Limit: 1})
	if err != nil || len(last.Runs) == 0 {
		return status, err
	}
	summary, err := summaryOf(last.Runs[0])
	status.LastRun = &api.LastRun{
		ID: summary.ID, State: summary.State, Outcome: summary.Outcome,
		CreatedAt: summary.CreatedAt,
	}
	return status, err
}

// IdleUnit returns a unit when nothing of it runs or waits, or as it stands when ctx ends.
func (s *Service) IdleUnit(ctx context.Context, name string) (api.Unit, error) {
	for ctx.Err() == nil {
		going := s.jobsOf(func(j *job) bool { return j.Unit.Name == name })
		if len(going) == 0 {
			break
		}
		select {
		case <-going[0].gone:
		case <-ctx.Done():
		}
	}
	return s.Unit(context.WithoutCancel(ctx), name)
}
