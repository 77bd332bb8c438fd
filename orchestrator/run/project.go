package run

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// PlaceProject stores a project in an empty directory, as far as the options let it in. The error
// is a fault.
type PlaceProject func(ctx context.Context, dir string, o workspace.Options) (workspace.Manifest, error)

// StoredProject returns what copies the project from the directory of a run; nil: there is none.
func StoredProject(runDir string) (PlaceProject, error) {
	manifest, err := workspace.LoadManifest(filepath.Join(runDir, layout.Manifest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the project of the earlier run can't be read")
	}
	return func(ctx context.Context, dir string, _ workspace.Options) (workspace.Manifest, error) {
		return manifest, StorageFault(workspace.Clone(ctx, filepath.Join(runDir, layout.Base), dir,
			workspace.CloneOptions{}))
	}, nil
}
