package orchestrator

import (
	"context"
	"maps"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// pins are the units that a flow's nodes name, each in the version that was found first: an
// edit of a unit is for the next run.
type pins struct {
	mu       sync.Mutex
	units    map[string]*unit.Unit // as this process found them
	versions map[string]string     // of those that have one; they are stored
}

// callee returns the unit of a name that the run calls.
func (j *job) callee(ctx context.Context, name string) (*unit.Unit, error) {
	if !j.loop.conducts(j.Unit) {
		return j.find(ctx, name)
	}
	j.pins.mu.Lock()
	defer j.pins.mu.Unlock()
	u, known := j.pins.units[name]
	if !known {
		var err error
		if u, err = j.pin(ctx, name); err != nil {
			return nil, err
		}
	}
	own := *u
	return &own, nil
}

// pin finds a unit for the first time in this process, and stores its version if the run has
// never called it. It is called with the lock of the pins held.
func (j *job) pin(ctx context.Context, name string) (u *unit.Unit, err error) {
	version, called := j.pins.versions[name]
	if called {
		u, err = j.loop.findVersion(ctx, name, version)
	} else {
		u, err = j.find(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	if !called && u.Version != "" {
		if err := j.storePin(name, u.Version); err != nil {
			return nil, err
		}
	}
	if j.pins.units == nil {
		j.pins.units = map[string]*unit.Unit{}
	}
	j.pins.units[name] = u
	return u, nil
}

// storePin stores the version of a unit in the record of the run. Before the run is running
// nothing is called yet: then the next transition stores all that was found until there.
func (j *job) storePin(name, version string) error {
	versions := maps.Clone(j.pins.versions)
	if versions == nil {
		versions = map[string]string{}
	}
	versions[name] = version
	j.Record.Versions = versions // nothing else writes or stores the record while the flow is walked
	if j.State() != api.Running {
		j.pins.versions = versions
		return nil
	}
	row, err := j.row()
	if err != nil {
		return err
	}
	err = j.loop.persist(j.loop.life, "pin unit", j.ID, func() error {
		return j.loop.journal.Save(context.WithoutCancel(j.loop.life), row)
	})
	if err == nil {
		j.pins.versions = versions
	}
	return err
}

// pinned returns the versions of the units that the run stays with, by name.
func (j *job) pinned() map[string]string {
	j.pins.mu.Lock()
	defer j.pins.mu.Unlock()
	return j.pins.versions // a new map with each change
}
