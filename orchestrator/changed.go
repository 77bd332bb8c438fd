package orchestrator

import (
	"context"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// shownStates are the states that a record can show.
var shownStates = []string{
	string(api.Idle), string(api.Starting), string(api.Running), string(api.Completed), string(api.Failed),
	string(api.Timeout), string(api.Cancelled),
}

// ListChanged returns a page of runs that nobody called, by their last transition, the latest
// first: those that the client of ctx may know of. The order is that in which transitions were stored; see
// api.ChangedPage.
func (s *Service) ListChanged(ctx context.Context, f api.ChangedFilter) (api.ChangedPage, error) {
	wanted := store.ChangedFilter{
		Units: f.Units, Context: f.Context, MadeBy: access.OnlyOwn(ctx), Known: shownStates,
		Since: f.Since, Cursor: f.Cursor, Limit: f.Limit,
	}
	if f.Unit != "" {
		wanted.Units = append([]string{f.Unit}, f.Units...)
	}
	for _, state := range f.States {
		wanted.States = append(wanted.States, string(state))
	}
	rows, err := s.store.Changed(ctx, wanted)
	if err != nil {
		return api.ChangedPage{}, err
	}
	page := api.ChangedPage{Runs: make([]api.Record, 0, len(rows.Runs)), Next: rows.Next, Total: int(rows.Total)}
	for _, row := range rows.Runs {
		page.Runs = append(page.Runs, shownOf(row))
	}
	return page, nil
}
