package units

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Options are what a Catalogue works with.
type Options struct {
	Home     string   // a directory for it alone: see registry.Options
	Sources  []string // directories of units
	Bundled  string   // that of units that come with AOD; "": there are none
	Switched *store.Units
	Feed     *store.Feed // is told of changes
	Rules    *Rules
	Switches *Switches
	Teams    access.Teams
	// Admits returns a fault while nothing may be changed.
	Admits func(ctx context.Context) error
	// Status tells what goes on with a unit.
	Status func(ctx context.Context, name string) (*api.UnitStatus, error)
	// Live returns the runs of a unit that go on or wait, the oldest first.
	Live func(name string) []Live
	// Audit stores what a client has done.
	Audit func(ctx context.Context, did store.Audited) error
	// Met is told of each unit that is put.
	Met    func(name string)
	Logger *slog.Logger
}

// Live is a run that this process leads.
type Live struct {
	ID    string
	Owner access.Owner
	Gone  <-chan struct{} // closed when the process has nothing more to do with it
}

// Catalogue has the units of a server. It is safe for concurrent use.
type Catalogue struct {
	opts     Options
	registry *registry.Registry
	names    names
	telling  sync.Mutex // from the look to what is told of it
	callers  callers
}

// New opens a Catalogue.
func New(opts Options) (*Catalogue, error) {
	c := &Catalogue{opts: opts}
	var err error
	c.registry, err = registry.New(registry.Options{
		Home: opts.Home, Sources: opts.Sources, Bundled: opts.Bundled,
		Accept: opts.Rules.acceptUnit, Govern: opts.Rules.Govern, Change: opts.Rules.Change, Logger: opts.Logger,
	})
	c.names = names{c.registry, opts.Rules, opts.Teams}
	return c, err
}

// Get implements run.Units.
func (c *Catalogue) Get(ctx context.Context, name string) (*unit.Unit, error) {
	return c.names.find(ctx, name)
}

// Version implements run.Units.
func (c *Catalogue) Version(ctx context.Context, name, version string) (*unit.Unit, error) {
	return c.registry.Version(ctx, name, version)
}

// Usable lists the units that the client of ctx may know of and that can be run.
func (c *Catalogue) Usable(ctx context.Context) (all []*unit.Unit, err error) {
	listed, err := c.names.list(ctx)
	for _, l := range listed {
		if l.Unit != nil {
			all = append(all, l.Unit)
		}
	}
	return all, err
}

// Prune removes the versions that are neither current nor needed.
func (c *Catalogue) Prune(ctx context.Context, needed func(name, version string) bool) error {
	_, err := c.registry.Prune(ctx, needed)
	return err
}

func problemOf(f *fault.Error) *api.UnitProblem {
	if f == nil {
		return nil
	}
	return &api.UnitProblem{Message: f.Msg, Hint: f.Hint, Findings: f.Findings}
}

// List lists the units that the client of ctx may know of, also those that never had a valid version. A client without
// a token is shown what the operator's directories have, and no uploads.
func (c *Catalogue) List(ctx context.Context) ([]api.Unit, error) {
	listed, err := c.names.list(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]api.Unit, 0, len(listed))
	for _, l := range listed {
		if l.Unit == nil {
			infos = append(infos, api.Unit{
				Name: l.Name, Kind: string(unit.Capsule), Source: "directory",
				Origin: l.Origin, Access: readOnly, Disabled: c.opts.Switches.isOff(l.Name, false),
				Problem: problemOf(l.Problem),
			})
			continue
		}
		infos = append(infos, c.info(l.Unit))
	}
	return infos, nil
}

// Show returns one unit with its contract.
func (c *Catalogue) Show(ctx context.Context, name string) (api.Unit, error) {
	u, err := c.names.find(ctx, name)
	if err != nil {
		return api.Unit{}, err
	}
	return c.Details(ctx, u)
}

// Details are what Show returns of a unit, for who has read it.
func (c *Catalogue) Details(ctx context.Context, u *unit.Unit) (api.Unit, error) {
	info, err := c.withSchemas(u)
	info.Agent = c.agentOf(u)
	if err == nil {
		info.Status, err = c.opts.Status(ctx, u.Name)
	}
	if err == nil {
		info.CalledBy, err = c.callersOf(ctx, u.Name)
	}
	return info, err
}

func (c *Catalogue) withSchemas(u *unit.Unit) (api.Unit, error) {
	info := c.info(u)
	raw, err := u.Schema()
	if err != nil {
		return info, err
	}
	var schema struct{ Input, Output json.RawMessage }
	if err := json.Unmarshal(raw, &schema); err != nil {
		return info, fmt.Errorf("decode schema: %w", err)
	}
	info.InputSchema, info.OutputSchema = schema.Input, schema.Output
	return info, nil
}

// Schema returns a unit's schema.json byte for byte.
func (c *Catalogue) Schema(ctx context.Context, name string) ([]byte, error) {
	u, err := c.names.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return u.Schema()
}

// The words for a unit's access (specification "Agent Wrapper", AccessType).
const (
	readOnly  = "read-only"
	readWrite = "read-write"
)

func (c *Catalogue) info(u *unit.Unit) api.Unit {
	info := api.Unit{
		Name: u.Name, Kind: string(u.Kind), Version: u.Version, Description: u.Description,
		Source: u.Source, Origin: u.Origin, By: u.By, Owner: api.OwnerOf(u.Team, u.By),
		Since: &u.Since, Problem: problemOf(u.Problem),
		Concurrency: c.opts.Rules.concurrencyOf(u), Access: readOnly,
		Disabled: c.opts.Switches.isOff(u.Name, u.Policy.Disabled),
	}
	if u.Policy.ReadWrite {
		info.Access = readWrite
	}
	if describer, err := c.describer(u); err == nil {
		info.Image = describer.Image(u)
	}
	info.Policy = c.opts.Rules.policyOf(u)
	return info
}
