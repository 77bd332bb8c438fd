package orchestrator

import (
	"context"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// ModelCalls returns the model calls of a run, in their order.
func (s *Service) ModelCalls(ctx context.Context, id string) ([]api.ModelCall, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	return KeptModelCalls(s.runPath(id))
}

// ModelExchange returns what a run asked with its n-th model call, and the answer. The error
// is a NotFound fault where that isn't kept.
func (s *Service) ModelExchange(ctx context.Context, id string, n int64) (api.ModelExchange, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return api.ModelExchange{}, err
	}
	return KeptModelExchange(s.runPath(id), n)
}

// Models returns the models that units can ask for, by name.
func (s *Service) Models() []api.Model { return s.opts.Models.list() }

// KeptModelCalls returns the model calls of a run whose directory is runDir, in their order.
func KeptModelCalls(runDir string) ([]api.ModelCall, error) {
	return readCalls(filepath.Join(runDir, layout.Transcript))
}

// KeptModelExchange returns what a run whose directory is runDir asked with its n-th model call,
// and the answer. The error is a NotFound fault where that isn't kept.
func KeptModelExchange(runDir string, n int64) (api.ModelExchange, error) {
	return readExchange(filepath.Join(runDir, layout.Transcript), n)
}

func (m Models) list() []api.Model {
	if m.Gateway == nil {
		return []api.Model{}
	}
	return m.Gateway.Models()
}
