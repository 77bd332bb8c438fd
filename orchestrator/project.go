package orchestrator

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// A run of a wrapped agent may work on a project. It is stored with the run as it was given; each
// attempt gets a copy, and what became of that is stored as changes.

// projectRules returns what a unit takes of a project. One that takes none is an Input fault.
func projectRules(u *unit.Unit) (workspace.Options, error) {
	c, ok := u.Definition.(*capsule.Capsule)
	if !ok || c.Wrapped == nil {
		return workspace.Options{}, fault.New(fault.Input, "%q takes no workspace: only units of the kind agent do",
			u.Name).
			WithHint("give it files with --file")
	}
	own := c.Wrapped.Workspace
	return workspace.Options{Limits: workspace.Limits{Bytes: own.Max}, Ignore: own.Ignore}, nil
}

// placeProject stores the project of a new run, and writes it to the disk if the run outlives
// this process.
func (j *job) placeProject(ctx context.Context) error {
	place := j.project
	if j.project = nil; place == nil {
		return nil
	}
	rules, err := projectRules(j.Unit)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(j.BaseDir(), 0o755); err != nil {
		return run.StorageFault(err)
	}
	manifest, err := place(ctx, j.BaseDir(), rules)
	if err != nil {
		return err
	}
	if err := manifest.Save(j.ManifestFile()); err != nil {
		return run.StorageFault(err)
	}
	if !j.Durable {
		return nil
	}
	if j.private.Project, err = digestOfFile(j.ManifestFile()); err != nil {
		return run.StorageFault(err)
	}
	return run.StorageFault(errors.Join(safefs.Sync(j.ManifestFile()), safefs.SyncTree(j.BaseDir(), j.loop.home.Runs)))
}

func digestOfFile(path string) (string, error) {
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
func (j *job) checkProject() error {
	if j.private.Project == "" {
		return nil
	}
	sum, err := digestOfFile(j.ManifestFile())
	if err == nil && sum != j.private.Project {
		err = errors.New("its manifest differs")
	}
	var manifest workspace.Manifest
	if err == nil {
		manifest, err = workspace.LoadManifest(j.ManifestFile())
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the run's project is lost").
			WithHint("submit it again; the disk may have failed, or files of the data directory were changed")
	}
	return manifest.Verify(j.life, j.BaseDir())
}

// projectOf returns what stores the project of an earlier run once more; nil: it had none.
func (s *Service) projectOf(id string) (run.PlaceProject, error) {
	return run.StoredProject(s.runPath(id))
}

// Changes opens what a run made of the files of its workspace, as JSON (api.Changes). The error
// is a NotFound fault if it changed none, as it had no workspace or could only read it.
func (s *Service) Changes(ctx context.Context, id string) (*os.File, error) {
	return s.openChanges(ctx, id, workspace.ChangesName)
}

// Patch is Changes in git's format.
func (s *Service) Patch(ctx context.Context, id string) (*os.File, error) {
	return s.openChanges(ctx, id, workspace.PatchName)
}

func (s *Service) openChanges(ctx context.Context, id, name string) (*os.File, error) {
	record, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if record.Changes == nil {
		return nil, fault.New(fault.NotFound, "the run has no changes").
			WithHint("it has them when it ended, was given a workspace, and its unit may write to it (access: " +
				"read-write, or workspace.write)")
	}
	f, _, err := safefs.OpenNamed(filepath.Join(s.runPath(id), layout.Changes, name))
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "the run's changes are gone")
	}
	return f, nil
}

// OpenChanged opens the new content of a file that a run changed: of a link its target.
func (s *Service) OpenChanged(ctx context.Context, id, name string) (*os.File, api.File, error) {
	list, err := s.Changes(ctx, id)
	if err != nil {
		return nil, api.File{}, err
	}
	_ = list.Close() // it is there
	root, err := os.OpenRoot(filepath.Join(s.runPath(id), layout.Changes))
	if err != nil {
		return nil, api.File{}, fault.Wrap(fault.NotFound, err, "the run's changes are gone")
	}
	defer func() { _ = root.Close() }() // holds no data
	f, info, err := safefs.OpenRegular(root, path.Join(workspace.ContentsName, name))
	if err != nil {
		return nil, api.File{}, fault.Wrap(fault.NotFound, err, "the run changed no such file").
			WithHint("GET /v1/runs/%s/changes lists them", id)
	}
	return f, api.File{Name: name, SizeBytes: info.Size()}, nil
}
