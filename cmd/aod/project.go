package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// maxSentProject bounds what is sent to a server, which has bounds of its own.
const maxSentProject = 64 * quantity.GiB

// projectFlags name the project that a run works on.
type projectFlags struct {
	dir     string
	withGit bool
}

func (f *projectFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "workspace", "",
		"of an agent: copy this directory to its /workspace/project; aod diff and aod apply bring back what it changes")
	flags.BoolVar(&f.withGit, "with-git", false,
		"with --workspace: copy its .git as well, without hooks, remotes and settings")
}

// scan returns the project; nil: none is named.
func (f projectFlags) scan(ctx context.Context, a *app, o workspace.Options) (*workspace.Project, error) {
	if f.dir == "" && f.withGit {
		return nil, fault.New(fault.Input, "--with-git needs --workspace")
	}
	if f.dir == "" {
		return nil, nil
	}
	o.Git = f.withGit
	project, err := workspace.Scan(ctx, f.dir, o)
	if err == nil && len(project.Skipped()) > 0 {
		a.note("%s repositories in the repository aren't copied: %s", a.stderr.style(yellow, "warning:"),
			printable(strings.Join(project.Skipped(), ", ")))
	}
	return project, err
}

// place returns what stores the project of a run on this machine; nil: none is named.
func (f projectFlags) place(ctx context.Context, a *app, c *capsule.Capsule) (run.PlaceProject, error) {
	o := workspace.Options{}
	if c.Wrapped != nil {
		o.Limits.Bytes, o.Ignore = c.Wrapped.Workspace.Max, c.Wrapped.Workspace.Ignore
	}
	project, err := f.scan(ctx, a, o)
	if project == nil || err != nil {
		return nil, err
	}
	return func(_ context.Context, dir string, o workspace.Options) (workspace.Manifest, error) {
		return project.Store(dir, o)
	}, nil
}

// send returns what writes the project to a server; nil: none is named.
func (f projectFlags) send(ctx context.Context, a *app) (func(io.Writer) error, error) {
	project, err := f.scan(ctx, a, workspace.Options{Limits: workspace.Limits{Bytes: maxSentProject}})
	if project == nil || err != nil {
		return nil, err
	}
	return project.WriteTar, nil
}
