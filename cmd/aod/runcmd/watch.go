package runcmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
)

// RegisterWatch adds --watch to a command.
func RegisterWatch(flags *pflag.FlagSet, watch *bool) {
	flags.BoolVar(watch, "watch", false, "do it again whenever a file of the capsule changes, until Ctrl-C")
}

// watchRuns is aod run --watch.
func watchRuns(ctx context.Context, env *cli.Env, name string, flags Flags) error {
	if err := checkWatch(env, name, flags); err != nil {
		return err
	}
	return Watch(ctx, env, name, flags.Input.Watched(),
		func(ctx context.Context) error { return Run(ctx, env, name, flags) })
}

// errChanged is the cause with which a change ends what goes on.
var errChanged = errors.New("a file changed")

// Watch does something with a unit's directory, and does it again after each change of the
// unit or of other files. A change ends what goes on: its result would be that of a state that
// is gone. It returns when ctx ends, which isn't an error.
func Watch(ctx context.Context, env *cli.Env, name string, files []string, do func(context.Context) error) error {
	if env.Server != "" {
		return fault.New(fault.Input, "--watch is for this machine").
			WithHint("leave out --server, and unset AOD_SERVER")
	}
	dir, err := lookup.Dir(env, name)
	if err != nil {
		return err
	}
	env.Patches = &container.Patches{}
	watcher := registry.NewWatcher(dir, files...)
	for {
		if err := untilChange(ctx, env, watcher, do); err != nil || ctx.Err() != nil {
			return err
		}
		env.Note("%s", env.Err.Style(ui.Dim, "something changed: once more"))
	}
}

// untilChange does it once, and returns when something has changed.
func untilChange(ctx context.Context, env *cli.Env, watcher *registry.Watcher, do func(context.Context) error) error {
	current, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	awaited := make(chan error, 1)
	go func() {
		awaited <- watcher.Await(ctx)
		stop(errChanged)
	}()
	err := do(current)
	if context.Cause(current) == nil {
		showFailure(env, err)
		env.Note("%s", env.Err.Style(ui.Dim, "waiting for a change; Ctrl-C ends"))
	}
	if err := <-awaited; err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// showFailure prints what would be the last words of a single run.
func showFailure(env *cli.Env, err error) {
	var code ui.ExitError
	if err != nil && !errors.As(err, &code) {
		env.Err.Fault(err)
	}
}

// checkWatch refuses what can't be done again and again.
func checkWatch(env *cli.Env, name string, flags Flags) error {
	switch {
	case flags.Input.Text == "-":
		return fault.New(fault.Input, "--watch can't read --input - more than once").
			WithHint("give the input by --input @FILE")
	case flags.Detach:
		return fault.New(fault.Input, "--watch and --detach exclude one another").WithHint("leave one of them out")
	}
	dir, err := lookup.Dir(env, name)
	if err != nil {
		return err
	}
	return outAside(dir, flags.Out)
}

// outAside refuses output files that land among the files that are watched: each run would be
// a change.
func outAside(dir, out string) error {
	if out == "" {
		out = "aod-output"
	}
	absolute, err := filepath.Abs(out)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return fault.Wrap(fault.Input, err, "--out %q can't be used", out)
	}
	rel, err := filepath.Rel(dir, absolute)
	if err != nil || !filepath.IsLocal(rel) {
		return nil //nolint:nilerr // it lies elsewhere
	}
	c, err := capsule.Load(dir)
	if err != nil {
		return nil //nolint:nilerr // the run tells
	}
	if sent, err := c.Sends(filepath.ToSlash(rel)); err != nil || !sent && rel != "." {
		return err
	}
	return fault.New(fault.Input, "output files would land in %s, among the files that --watch looks at",
		ui.RelativePath(absolute)+string(os.PathSeparator)).
		WithHint("name another directory with --out, or leave this one out in .dockerignore")
}
