package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// takesProject refuses a project where a sandbox can't have one.
func (c *Containers) takesProject(req run.Request) error {
	if req.Project != nil && runtime.IsRemote(c.engine) {
		return fault.New(fault.Unsupported, "a run at an engine on another machine gets no workspace").
			WithHint("use an engine of this machine, or give the agent files with --file")
	}
	return nil
}

// mayWrite reports whether the run may change its project.
func (x *execution) mayWrite() bool {
	c, err := wrappedOf(x.Unit)
	return err == nil && x.Project && (x.Unit.Policy.ReadWrite || c.Wrapped.Workspace.Write)
}

// keptProject is the directory in which the turns of a session work, one after the other; ""
// where the attempt has a copy of its own, or none that it may change.
func (x *execution) keptProject() string {
	if x.Session == nil || !x.mayWrite() {
		return ""
	}
	return filepath.Join(x.Session.Dir, layout.Project)
}

// placeProject gives the attempt its copy of the project, or that which its session has; one
// that may only be read is the stored one. The program starts in dir.
func (x *execution) placeProject(ctx context.Context, spec *runtime.Spec, layout runtime.Layout, dir string) error {
	if err := x.checkStartDir(dir); err != nil {
		return err
	}
	switch {
	case !x.Project:
		return nil
	case !x.mayWrite():
		spec.Project = x.BaseDir()
		return layout.MakeProject()
	case layout.Kept != "":
		return errors.Join(layout.MakeProject(), x.makeKept(ctx, layout.Kept))
	}
	return x.cloneProject(ctx, x.ID, layout.Project())
}

// checkStartDir refuses a directory that the caller names and that the project hasn't: the engine
// would make it, as its own.
func (x *execution) checkStartDir(dir string) error {
	below, inside := strings.CutPrefix(dir, runtime.ProjectDir+"/")
	if !x.Project || x.Start.Dir == "" || !inside {
		return nil
	}
	root, err := os.OpenRoot(x.BaseDir())
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // read only
	if info, err := root.Stat(below); err != nil || !info.IsDir() {
		return fault.New(fault.Input, "dir: the workspace has no directory %s", fault.Quote(below)).
			WithHint("name one that holds files")
	}
	return nil
}

// makeKept copies the project for the first turn of a session. It is whole, or not there.
func (x *execution) makeKept(ctx context.Context, kept string) error {
	if _, err := os.Lstat(kept); !errors.Is(err, fs.ErrNotExist) {
		return run.StorageFault(err)
	}
	begun := kept + ".begun"
	if err := safefs.RemoveTree(begun); err != nil {
		return run.StorageFault(err)
	}
	if err := runtime.OwnTree(begun); err != nil {
		return err
	}
	if err := x.cloneProject(ctx, x.Session.ID, begun); err != nil {
		return err
	}
	if x.Durable {
		if err := safefs.SyncTree(begun, x.Session.Dir); err != nil {
			return run.StorageFault(err)
		}
	}
	return run.StorageFault(os.Rename(begun, kept))
}

// cloneProject copies the project for the user of a sandbox: that of a session, or of a run.
func (x *execution) cloneProject(ctx context.Context, sandbox, to string) error {
	var own workspace.CloneOptions
	own.UID, own.GID = runtime.SandboxOwner(x.containers.uidOf(ctx, sandbox))
	own.Open = os.Geteuid() == 0 && x.containers.mapsUsers(ctx)
	err := workspace.Clone(ctx, x.BaseDir(), to, own)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return run.StorageFault(err)
}

// takeChanges stores what the attempt made of its project, also where it failed or was stopped.
func (x *execution) takeChanges(
	ctx context.Context, result run.Result, of runtime.Layout, limits runtime.Limits,
) (run.Result, error) {
	if !x.mayWrite() {
		return result, nil
	}
	found, err := x.compare(context.WithoutCancel(ctx), of.Project(), workspace.CompareOptions{
		Limits: workspace.Limits{Bytes: limits.OutputBytes}, Partial: result.State != api.Completed,
	})
	switch {
	case fault.Is(err, fault.TooLarge) && result.State == api.Completed:
		public := fault.Public(err)
		return exceeded(0, &runtime.LimitError{Limit: "output", Message: public.Msg, Hint: public.Hint}), nil
	case fault.Is(err, fault.TooLarge):
		x.Warn("its changes aren't kept: %s", fault.Public(err).Msg)
		return result, nil
	case err != nil:
		return run.Result{}, run.StorageFault(err)
	}
	counts := api.ChangeCounts{Files: len(found.Changes), Partial: found.Partial}
	for _, c := range found.Changes {
		counts.Bytes += c.Size
	}
	x.Record.Changes = &counts
	if len(found.Warnings) > 0 {
		x.Warn("left out of the changes: %s", strings.Join(found.Warnings, "; "))
	}
	return result, nil
}

func (x *execution) compare(ctx context.Context, project string, o workspace.CompareOptions) (api.Changes, error) {
	c, err := wrappedOf(x.Unit)
	if err != nil {
		return api.Changes{}, err
	}
	manifest, err := workspace.LoadManifest(x.ManifestFile())
	if err != nil {
		return api.Changes{}, fmt.Errorf("read the project's manifest: %w", err)
	}
	o.Ignore = c.Wrapped.Workspace.Ignore
	base := workspace.Base{Dir: x.BaseDir(), Manifest: manifest}
	return workspace.Compare(ctx, base, project, x.ChangesDir(), o)
}
