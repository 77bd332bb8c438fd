package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

func problemOf(f *fault.Error) *api.UnitProblem {
	if f == nil {
		return nil
	}
	return &api.UnitProblem{Message: f.Msg, Hint: f.Hint, Findings: f.Findings}
}

// Units lists all units, also those that never had a valid version. A client without a token is
// shown what the operator's directories have, and no uploads.
func (s *Service) Units(ctx context.Context) ([]api.Unit, error) {
	listed, err := s.units.List(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]api.Unit, 0, len(listed))
	for _, l := range listed {
		if l.Unit == nil {
			infos = append(infos, api.Unit{
				Name: l.Name, Kind: string(unit.Capsule), Source: "directory",
				Origin: l.Origin, Access: readOnly, Disabled: s.switches.isOff(l.Name, false),
				Problem: problemOf(l.Problem),
			})
			continue
		}
		if isShown(ctx, l.Unit) {
			infos = append(infos, s.info(l.Unit))
		}
	}
	return infos, nil
}

// isShown reports whether the client of ctx may know that there is a unit.
func isShown(ctx context.Context, u *unit.Unit) bool {
	return u.Source != unit.FromUpload || !access.IsAnonymous(ctx)
}

// Unit returns one unit with its contract.
func (s *Service) Unit(ctx context.Context, name string) (api.Unit, error) {
	u, err := s.units.Get(ctx, name)
	if err != nil {
		return api.Unit{}, err
	}
	info, err := s.withSchemas(u)
	if err == nil {
		info.Status, err = s.statusOf(ctx, name)
	}
	return info, err
}

func (s *Service) withSchemas(u *unit.Unit) (api.Unit, error) {
	info := s.info(u)
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
func (s *Service) Schema(ctx context.Context, name string) ([]byte, error) {
	u, err := s.units.Get(ctx, name)
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

func (s *Service) info(u *unit.Unit) api.Unit {
	settings := s.opts.Units[u.Name]
	info := api.Unit{
		Name: u.Name, Kind: string(u.Kind), Version: u.Version, Description: u.Description,
		Source: u.Source, Origin: u.Origin, Since: &u.Since, Problem: problemOf(u.Problem),
		Concurrency: cmp.Or(settings.Concurrency, u.Policy.Concurrency), Access: readOnly,
		Disabled: s.switches.isOff(u.Name, u.Policy.Disabled),
	}
	if u.Policy.ReadWrite {
		info.Access, info.Concurrency = readWrite, 1
	}
	if describer, err := s.describer(u); err == nil {
		info.Image = describer.Image(u)
	}
	info.Policy = s.policyOf(u)
	return info
}

// PutUnit takes a unit's directory as a tar, checks it, lets its kind accept it, and makes it
// the unit's current version. Nothing changes when any of that fails. It reports whether
// another version was current before.
func (s *Service) PutUnit(ctx context.Context, name string, archive io.Reader) (api.Unit, bool, error) {
	if err := s.admits(ctx); err != nil {
		return api.Unit{}, false, err
	}
	u, created, err := s.units.Put(ctx, name, archive)
	if err != nil {
		return api.Unit{}, false, err
	}
	s.metrics.UnitMet(u.Name)
	info, err := s.withSchemas(u)
	return info, created, err
}

// acceptUnit holds an upload against the policy, and lets its kind check and prepare it.
func (s *Service) acceptUnit(ctx context.Context, u *unit.Unit) error {
	if refusal := u.Policy.Refusal; refusal != nil {
		return refusal
	}
	kind, err := s.kinds.Of(u)
	if err != nil {
		return err
	}
	if acceptor, ok := kind.(run.Acceptor); ok {
		return acceptor.Accept(ctx, u)
	}
	return nil
}

// describer returns the unit's kind as a run.Describer, or an Input fault if it is none.
func (s *Service) describer(u *unit.Unit) (run.Describer, error) {
	kind, err := s.kinds.Of(u)
	if err != nil {
		return nil, err
	}
	if describer, ok := kind.(run.Describer); ok {
		return describer, nil
	}
	return nil, fault.New(fault.Input, "%q is no Agentic Unit", u.Name).
		WithHint("GET /v1/units/%s/schema has its contract", u.Name)
}

// StdinLimit returns how many bytes an Agentic Unit takes on stdin. The error is an Input
// fault for a unit of another kind, which takes none.
func (s *Service) StdinLimit(ctx context.Context, name string) (int64, error) {
	u, err := s.units.Get(ctx, name)
	if err != nil {
		return 0, err
	}
	describer, err := s.describer(u)
	if err != nil {
		return 0, fault.New(fault.Input, "%q is no Agentic Unit: it doesn't read stdin", name).
			WithHint("POST /v1/runs runs units of every kind")
	}
	return describer.StdinBytes(u)
}

// Card returns the model card of an Agentic Unit as its program printed it. For a unit of
// another kind the error is an Input fault; if the program prints no card, a Capsule fault.
func (s *Service) Card(ctx context.Context, name string) (json.RawMessage, error) {
	u, err := s.units.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	describer, err := s.describer(u)
	if err != nil {
		return nil, fault.New(fault.Input, "%q is no Agentic Unit: it has no model card", name).
			WithHint("GET /v1/units/%s/schema has its contract", name)
	}
	return describer.Card(ctx, u)
}

// Pool returns the figures of the sandboxes that wait for runs.
func (s *Service) Pool() api.PoolStats {
	for kind := range s.kinds.Each() {
		if warmer, ok := kind.(run.Warmer); ok {
			return warmer.Warmed()
		}
	}
	return api.PoolStats{Units: []api.PoolUnit{}}
}
