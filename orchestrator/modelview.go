package orchestrator

import (
	"context"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/feature/models"
)

// ModelCalls returns the model calls of a run, in their order.
func (s *Service) ModelCalls(ctx context.Context, id string) ([]api.ModelCall, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	return models.ReadCalls(s.runPath(id))
}

// ModelExchange returns what a run asked with its n-th model call, and the answer. The error
// is a NotFound fault where that isn't kept.
func (s *Service) ModelExchange(ctx context.Context, id string, n int64) (api.ModelExchange, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return api.ModelExchange{}, err
	}
	return models.ReadExchange(s.runPath(id), n)
}

// Models returns the models that units can ask for, by name.
func (s *Service) Models() []api.Model { return s.opts.Models.List() }
