package flow

import (
	"context"
	"maps"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// pins are the units that the nodes of a run name, each in the version that was found first: an edit of a unit is for
// the next run.
type pins struct {
	run      *run.Run
	mu       sync.Mutex
	units    map[string]*unit.Unit // as this process found them
	versions map[string]string     // of those that have one; they are stored
}

func newPins(r *run.Run) *pins {
	return &pins{run: r, units: map[string]*unit.Unit{}, versions: r.Record.Versions}
}

// callee returns the unit that the run calls by a name.
func (p *pins) callee(ctx context.Context, name string) (*unit.Unit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u, known := p.units[name]
	if !known {
		var err error
		if u, err = p.pin(ctx, name); err != nil {
			return nil, err
		}
	}
	own := *u
	return &own, nil
}

// pin finds a unit for the first time in this process, and stores its version if the run has
// never called it. It is called with the lock of the pins held.
func (p *pins) pin(ctx context.Context, name string) (u *unit.Unit, err error) {
	full, version, called := p.called(name)
	if called {
		u, err = p.run.Units.Version(ctx, full, version)
	} else {
		u, err = p.run.Units.Get(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	if !called && u.Version != "" {
		if err := p.store(u.Name, u.Version); err != nil {
			return nil, err
		}
	}
	p.units[name] = u
	return u, nil
}

// called returns the version of a unit that the run has called by a name, which may stand there without its team.
func (p *pins) called(name string) (full, version string, is bool) {
	for _, full := range []string{name, api.InTeam(p.run.Unit.Team, name)} {
		if version, is := p.versions[full]; is {
			return full, version, true
		}
	}
	return name, "", false
}

// store stores the version of a unit in the record of the run. Before the run is running
// nothing is called yet: then the next transition stores all that was found until there.
func (p *pins) store(name, version string) error {
	versions := map[string]string{name: version}
	maps.Copy(versions, p.versions)
	p.run.Record.Versions = versions // nothing else writes or stores the record while the flow is walked
	if p.run.State() == api.Running {
		if err := p.run.KeepSaved(); err != nil {
			return err
		}
	}
	p.versions = versions
	return nil
}

// pinned returns the versions by the units' names.
func (p *pins) pinned() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.versions // a new map with each change
}
