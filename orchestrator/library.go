package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/unit"
)

func problemOf(f *fault.Error) *api.UnitProblem {
	if f == nil {
		return nil
	}
	return &api.UnitProblem{Message: f.Msg, Hint: f.Hint, Findings: f.Findings}
}

// Units lists all units, also those that have never been good.
func (s *Service) Units(ctx context.Context) ([]api.Unit, error) {
	listed, err := s.units.List(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]api.Unit, 0, len(listed))
	for _, l := range listed {
		if l.Unit == nil {
			infos = append(infos, api.Unit{Name: l.Name, Kind: string(unit.Capsule), Source: "directory", Origin: l.Origin, Access: readOnly, Problem: problemOf(l.Problem)})
			continue
		}
		infos = append(infos, s.info(l.Unit))
	}
	return infos, nil
}

// Unit returns one unit with its contract.
func (s *Service) Unit(ctx context.Context, name string) (api.Unit, error) {
	u, err := s.units.Get(ctx, name)
	if err != nil {
		return api.Unit{}, err
	}
	return s.withSchemas(u)
}

func (s *Service) withSchemas(u *unit.Unit) (api.Unit, error) {
	info := s.info(u)
	raw, err := u.Capsule.Schema()
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

// Schema returns a unit's schema.json as it is.
func (s *Service) Schema(ctx context.Context, name string) ([]byte, error) {
	u, err := s.units.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return u.Capsule.Schema()
}

// The words for a unit's access (specification "Agent Wrapper", AccessType).
const (
	readOnly  = "read-only"
	readWrite = "read-write"
)

func (s *Service) info(u *unit.Unit) api.Unit {
	settings := s.opts.Units[u.Name]
	info := api.Unit{
		Name: u.Name, Kind: string(u.Kind), Version: u.Version, Description: u.Capsule.Description,
		Source: u.Source, Origin: u.Origin, Since: &u.Since, Problem: problemOf(u.Problem),
		Concurrency: cmp.Or(settings.Concurrency, u.Capsule.Agent.Concurrency), Access: readOnly,
	}
	if settings.ReadWrite {
		info.Access, info.Concurrency = readWrite, 1
	}
	if recipe, err := recipeOf(u.Capsule); err == nil {
		info.Image = recipe.Tag()
	}
	return info
}

// PutUnit takes a capsule's directory as a tar, checks it, builds its image and makes it
// the unit's current version. Nothing changes when any of that fails. It reports whether
// another version was current before.
func (s *Service) PutUnit(ctx context.Context, name string, archive io.Reader) (api.Unit, bool, error) {
	if err := s.admits(); err != nil {
		return api.Unit{}, false, err
	}
	u, created, err := s.units.Put(ctx, name, archive)
	if err != nil {
		return api.Unit{}, false, err
	}
	info, err := s.withSchemas(u)
	return info, created, err
}

// build makes the image of an upload that is about to become a unit's version. One without
// an image gets no secret of the operator's: whoever may upload could have it sent anywhere.
func (s *Service) build(ctx context.Context, c *capsule.Capsule) error {
	if c.Remote != nil && c.Remote.Auth != nil {
		return fault.New(fault.Forbidden, "the uploaded unit %q names a secret, which only units in directories of the server get", c.Name).
			WithHint("keep it in one of the server's `units` directories")
	}
	if c.Kind == capsule.KindRemote {
		return nil
	}
	_, _, _, err := s.exec.Build(ctx, c, func(runtime.BuildEvent) {})
	return err
}
