package a2a

import (
	"context"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
)

// counted are the states of which a status has a number. Tasks that ask something are among those
// that work, and those that were rejected among those that failed.
var counted = []sdk.TaskState{
	sdk.TaskStateSubmitted, sdk.TaskStateWorking, sdk.TaskStateCompleted, sdk.TaskStateFailed, sdk.TaskStateCanceled,
}

// Status says what is served, and how many tasks there are.
func (s *Server) Status(ctx context.Context) (api.A2AStatus, error) {
	status := api.A2AStatus{Units: []string{}, Bindings: s.bindings(), Versions: Versions(), Tasks: map[string]int{}}
	units, err := s.svc.Units(ctx)
	if err != nil {
		return status, err
	}
	for _, u := range units {
		if u.Problem == nil && !u.Disabled {
			status.Units = append(status.Units, u.Name)
		}
	}
	for _, state := range counted {
		page, err := s.svc.List(ctx, Filter{States: statesOf[state], Limit: 1})
		if err != nil {
			return status, err
		}
		status.Tasks[keyOf(state)] = page.Total
	}
	if s.opts.Push != nil {
		backlog, err := s.opts.Push.PushBacklog(ctx)
		if err != nil {
			return status, err
		}
		status.Push = backlog
	}
	return status, nil
}
