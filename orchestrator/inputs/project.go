package inputs

import (
	"context"
	"errors"
	"os"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// A run of a wrapped agent may work on a project. It is stored with the run as it was given; each
// attempt gets a copy, and what became of that is stored as changes.

// ProjectRules returns what a unit takes of a project. One that takes none is an Input fault.
func ProjectRules(u *unit.Unit) (workspace.Options, error) {
	c, ok := u.Definition.(*capsule.Capsule)
	if !ok || c.Wrapped == nil {
		return workspace.Options{}, fault.New(fault.Input, "%q takes no workspace: only units of the kind agent do",
			u.Name).
			WithHint("give it files with --file")
	}
	own := c.Wrapped.Workspace
	return workspace.Options{Limits: workspace.Limits{Bytes: own.Max}, Ignore: own.Ignore}, nil
}

// StoreProject stores a project in a directory that it makes, with its manifest, by the rules of a unit. The error is
// a fault.
func StoreProject(ctx context.Context, u *unit.Unit, place run.PlaceProject, base, manifest string) error {
	rules, err := ProjectRules(u)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return run.StorageFault(err)
	}
	placed, err := place(ctx, base, rules)
	if err != nil {
		return err
	}
	return run.StorageFault(placed.Save(manifest))
}

// placeProject stores the project of a new run, and writes it to the disk if the run outlives
// this process.
func (g *Given) placeProject(ctx context.Context, r *run.Run, place run.PlaceProject, runs string) error {
	if place == nil {
		return nil
	}
	err := StoreProject(ctx, r.Unit, place, r.BaseDir(), r.ManifestFile())
	if err != nil || !r.Durable {
		return err
	}
	if g.Project, err = digestOf(r.ManifestFile()); err != nil {
		return run.StorageFault(err)
	}
	return run.StorageFault(errors.Join(safefs.Sync(r.ManifestFile()), safefs.SyncTree(r.BaseDir(), runs)))
}

func digestOf(path string) (string, error) {
	f, _, err := safefs.OpenNamed(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read only
	_, sum, err := safefs.Digest(f)
	return sum, err
}

// checkProject holds the project of a run that an earlier process accepted against what was
// stored of it. The error is a fault.
func (g *Given) checkProject(ctx context.Context, r *run.Run) error {
	if g.Project == "" {
		return nil
	}
	sum, err := digestOf(r.ManifestFile())
	if err == nil && sum != g.Project {
		err = errors.New("its manifest differs")
	}
	var manifest workspace.Manifest
	if err == nil {
		manifest, err = workspace.LoadManifest(r.ManifestFile())
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the run's project is lost").
			WithHint("submit it again; the disk may have failed, or files of the data directory were changed")
	}
	return manifest.Verify(ctx, r.BaseDir())
}
