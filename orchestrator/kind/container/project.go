package container

import (
	"cmp"
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

// project is what a run has of the project that it works on, if it has one.
type project struct {
	run     *run.Run
	machine *machine
}

// mayWrite reports whether the run may change its project.
func (p *project) mayWrite() bool {
	c, err := wrappedOf(p.run.Unit)
	return err == nil && p.run.Project && (p.run.Unit.Policy.ReadWrite || c.Wrapped.Workspace.Write)
}

// kept is the directory in which the turns of a session work, one after the other; ""
// where the attempt has a copy of its own, or none that it may change.
func (p *project) kept() string {
	if p.run.Session == nil || !p.mayWrite() {
		return ""
	}
	return filepath.Join(p.run.Session.Dir, layout.Project)
}

// place gives the attempt its copy of the project, or that which its session has; one
// that may only be read is the stored one. The program starts in dir.
func (p *project) place(ctx context.Context, spec *runtime.Spec, to runtime.Layout, dir string) error {
	if err := p.checkStartDir(dir); err != nil {
		return err
	}
	switch {
	case !p.run.Project:
		return nil
	case !p.mayWrite():
		spec.Project = p.run.BaseDir()
		return to.Workdir().MakeProject()
	case to.Kept != "":
		from := cmp.Or(leftElsewhere(p.run, layout.Project), p.run.BaseDir())
		return errors.Join(to.Workdir().MakeProject(), p.makeKept(ctx, from, to.Kept))
	}
	return p.clone(ctx, p.run.ID, p.run.BaseDir(), to.Project())
}

// checkStartDir refuses a directory that the caller names and that the project hasn't: the engine
// would make it, as its own.
func (p *project) checkStartDir(dir string) error {
	below, inside := strings.CutPrefix(dir, runtime.ProjectDir+"/")
	if !p.run.Project || p.run.Start.Dir == "" || !inside {
		return nil
	}
	root, err := os.OpenRoot(p.run.BaseDir())
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

// makeKept makes a directory that comes along from turn to turn of a session, as a copy. It is whole, or not there.
func (p *project) makeKept(ctx context.Context, from, kept string) error {
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
	if err := p.clone(ctx, p.run.Session.ID, from, begun); err != nil {
		return err
	}
	if p.run.Durable {
		if err := safefs.SyncTree(begun, p.run.Session.Dir); err != nil {
			return run.StorageFault(err)
		}
	}
	return run.StorageFault(os.Rename(begun, kept))
}

// clone copies a directory for the user of a sandbox: that of a session, or of a run.
func (p *project) clone(ctx context.Context, sandbox, from, to string) error {
	var own workspace.CloneOptions
	own.UID, own.GID = runtime.SandboxOwner(p.machine.uidOf(ctx, sandbox))
	own.Open = os.Geteuid() == 0 && p.machine.mapsUsers(ctx)
	err := workspace.Clone(ctx, from, to, own)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return run.StorageFault(err)
}

// takeChanges stores what the attempt made of its project, also where it failed or was stopped.
func (p *project) takeChanges(
	ctx context.Context, result run.Result, of runtime.Layout, limits runtime.Limits,
) (run.Result, error) {
	if !p.mayWrite() {
		return result, nil
	}
	found, err := p.compare(context.WithoutCancel(ctx), of.Project(), workspace.CompareOptions{
		Limits: workspace.Limits{Bytes: limits.OutputBytes}, Partial: result.State != api.Completed,
	})
	switch {
	case fault.Is(err, fault.TooLarge) && result.State == api.Completed:
		public := fault.Public(err)
		return exceeded(0, &runtime.LimitError{Limit: "output", Message: public.Msg, Hint: public.Hint}), nil
	case fault.Is(err, fault.TooLarge):
		p.run.Warn("its changes aren't kept: %s", fault.Public(err).Msg)
		return result, nil
	case err != nil:
		return run.Result{}, run.StorageFault(err)
	}
	p.run.Record.Changes = found.Counts()
	if len(found.Warnings) > 0 {
		p.run.Warn("left out of the changes: %s", strings.Join(found.Warnings, "; "))
	}
	return result, nil
}

func (p *project) compare(ctx context.Context, project string, o workspace.CompareOptions) (api.Changes, error) {
	c, err := wrappedOf(p.run.Unit)
	if err != nil {
		return api.Changes{}, err
	}
	manifest, err := workspace.LoadManifest(p.run.ManifestFile())
	if err != nil {
		return api.Changes{}, fmt.Errorf("read the project's manifest: %w", err)
	}
	o.Ignore = c.Wrapped.Workspace.Ignore
	base := workspace.Base{Dir: p.run.BaseDir(), Manifest: manifest}
	return workspace.Compare(ctx, base, project, p.run.ChangesDir(), o)
}
