package turns

import (
	"context"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/inputs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// A session may work on a project. It is stored with the session as it was given; the first turn
// makes the copy in which all turns work, and what has become of that by the end of a turn is
// stored with the turn's run.

// placeProject stores the project of a new session, and writes it to the disk; nil: there is
// none.
func (s *Sessions) placeProject(ctx context.Context, u *unit.Unit, id string, place run.PlaceProject) error {
	if place == nil {
		return nil
	}
	dir := s.registry.opts.Dir(id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return run.StorageFault(err)
	}
	base, list := filepath.Join(dir, layout.Base), filepath.Join(dir, layout.Manifest)
	if err := inputs.StoreProject(ctx, u, place, base, list); err != nil {
		return err
	}
	return run.StorageFault(safefs.SyncTree(dir, s.opts.Home))
}

// hasProject reports whether the session with a directory was given a project.
func hasProject(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, layout.Manifest))
	return err == nil
}

// LastChange returns the newest turn of a session that has changes: what its project has become.
// The error is a NotFound fault where there is none yet.
func (s *Sessions) LastChange(ctx context.Context, id string) (turn string, err error) {
	if _, err := s.row(ctx, id); err != nil {
		return "", err
	}
	filter := store.Filter{Session: id, Limit: 100}
	for {
		page, err := s.opts.Store.Runs.List(ctx, filter)
		if err != nil {
			return "", err
		}
		for _, row := range page.Runs {
			if record, err := records.Decode(row); err == nil && record.Changes != nil {
				return row.ID, nil
			}
		}
		if filter.Cursor = page.Next; filter.Cursor == "" {
			return "", fault.New(fault.NotFound, "the session has no changes").
				WithHint("it has them after a turn, if it was given a workspace and its unit may write to it " +
					"(access: read-write, or workspace.write)")
		}
	}
}

// OpenChanged is OpenChanged for the newest turn of a session that has changes.
func (s *Sessions) OpenChanged(ctx context.Context, id, name string) (*os.File, api.File, error) {
	turn, err := s.LastChange(ctx, id)
	if err != nil {
		return nil, api.File{}, err
	}
	return s.opts.Files.OpenChanged(ctx, turn, name)
}
