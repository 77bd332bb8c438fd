package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/unit"
)

// StdinLimit returns how many bytes an Agentic Unit takes on stdin. The error is an Input
// fault for a unit of another kind, which takes none.
func (s *Service) StdinLimit(ctx context.Context, name string) (int64, error) {
	u, err := s.units.Get(ctx, name)
	if err != nil {
		return 0, err
	}
	if u.Capsule.Kind != capsule.KindAU {
		return 0, fault.New(fault.Input, "%q is no Agentic Unit: it doesn't read stdin", name).
			WithHint("POST /v1/runs runs units of every kind")
	}
	return cmp.Or(s.opts.Units[name].StdinBytes, au.DefaultStdinBytes), nil
}

// Card returns the model card of an Agentic Unit as its program printed it. The program is
// asked once for each version, in a sandbox of its own. The error is an Input fault for a
// unit of another kind, a Capsule fault for one that gives no card.
func (s *Service) Card(ctx context.Context, name string) (json.RawMessage, error) {
	u, err := s.units.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	if u.Capsule.Kind != capsule.KindAU {
		return nil, fault.New(fault.Input, "%q is no Agentic Unit: it has no model card", name).
			WithHint("GET /v1/units/%s/schema has its contract", name)
	}
	if err := s.describing.take(ctx); err != nil {
		return nil, err
	}
	defer s.describing.give()
	card, err := s.describe(ctx, u)
	if fault.Is(err, fault.NotFound) { // somebody removed the image, which is known no more
		card, err = s.describe(ctx, u)
	}
	if err != nil {
		return nil, err
	}
	return card.JSON(), nil
}

// describe asks a unit for its card in a directory among those of the runs: what is left of
// one that belongs to no run goes at the next start.
func (s *Service) describe(ctx context.Context, u *unit.Unit) (card *au.Card, err error) {
	id, err := newRunID("")
	if err != nil {
		return nil, err
	}
	run := newRun(id, prepared{}, Request{Capsule: u.Capsule})
	run.record.Version = u.Version
	image, err := s.exec.ensureImage(ctx, run)
	if err != nil {
		return nil, err
	}
	dir := s.runPath(id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, noRoom(err)
	}
	defer func() { err = errors.Join(err, removeRun(dir)) }()
	card, err = s.exec.card(ctx, run, s.exec.spec(run, image), dir)
	if fault.Is(err, fault.NotFound) {
		s.exec.images.forget(run.imageKey())
	}
	return card, err
}
