package backup

import (
	"context"

	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// addSchedules adds the files that a snapshot's schedules give to their runs. They may be replaced
// meanwhile: such a schedule has none then, and its runs say so.
func (a *archiver) addSchedules(ctx context.Context, s *store.Store) error {
	for before := int64(0); ; {
		rows, err := s.Schedules(ctx, before, 0)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			before = row.Seq
			if row.Files == "" {
				continue
			}
			if err := a.tree(ctx, layout.Schedules+"/"+row.Files); err != nil {
				return err
			}
		}
	}
}
