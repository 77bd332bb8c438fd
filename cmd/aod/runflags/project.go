package runflags

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// maxSentProject bounds what is sent to a server, which has bounds of its own.
const maxSentProject = 64 * quantity.GiB

// Project names the project that a run works on.
type Project struct {
	Dir     string
	withGit bool
}

// Register adds the flags to a command.
func (f *Project) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Dir, "workspace", "",
		"of an agent: copy this directory to its /workspace/project; aod diff and aod apply bring back what it changes")
	flags.BoolVar(&f.withGit, "with-git", false,
		"with --workspace: copy its .git as well, without hooks, remotes and settings")
}

// scan returns the project; nil: none is named.
func (f Project) scan(ctx context.Context, env *cli.Env, o workspace.Options) (*workspace.Project, error) {
	if f.Dir == "" && f.withGit {
		return nil, fault.New(fault.Input, "--with-git needs --workspace")
	}
	if f.Dir == "" {
		return nil, nil
	}
	o.Git = f.withGit
	project, err := workspace.Scan(ctx, f.Dir, o)
	if err == nil && len(project.Skipped()) > 0 {
		env.Note("%s repositories in the repository aren't copied: %s", env.Err.Style(ui.Yellow, "warning:"),
			ui.Printable(strings.Join(project.Skipped(), ", ")))
	}
	return project, err
}

// Place returns what stores the project of a run on this machine; nil: none is named.
func (f Project) Place(ctx context.Context, env *cli.Env, c *capsule.Capsule) (run.PlaceProject, error) {
	o := workspace.Options{}
	if c.Wrapped != nil {
		o.Limits.Bytes, o.Ignore = c.Wrapped.Workspace.Max, c.Wrapped.Workspace.Ignore
	}
	project, err := f.scan(ctx, env, o)
	if project == nil || err != nil {
		return nil, err
	}
	return func(_ context.Context, dir string, o workspace.Options) (workspace.Manifest, error) {
		return project.Store(dir, o)
	}, nil
}

// Send returns what writes the project to a server; nil: none is named.
func (f Project) Send(ctx context.Context, env *cli.Env) (func(io.Writer) error, error) {
	project, err := f.scan(ctx, env, workspace.Options{Limits: workspace.Limits{Bytes: maxSentProject}})
	if project == nil || err != nil {
		return nil, err
	}
	return project.WriteTar, nil
}
