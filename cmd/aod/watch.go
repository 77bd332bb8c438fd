package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
)

func registerWatch(flags *pflag.FlagSet, watch *bool) {
	flags.BoolVar(watch, "watch", false, "do it again whenever a file of the capsule changes, until Ctrl-C")
}

// watchRuns is aod run --watch.
func (a *app) watchRuns(ctx context.Context, name string, flags runFlags) error {
	if err := a.checkWatch(name, flags); err != nil {
		return err
	}
	return a.watch(ctx, name, flags.input.watched(),
		func(ctx context.Context) error { return a.runCapsule(ctx, name, flags) })
}

// errChanged is the cause with which a change ends what goes on.
var errChanged = errors.New("a file changed")

// watch does something with a unit's directory, and does it again after each change of the
// unit or of other files. A change ends what goes on: its result would be that of a state that
// is gone. It returns when ctx ends, which is no error.
func (a *app) watch(ctx context.Context, name string, files []string, do func(context.Context) error) error {
	if a.server != "" {
		return fault.New(fault.Input, "--watch is for this machine").
			WithHint("leave out --server, and unset AOD_SERVER")
	}
	dir, err := a.find(name)
	if err != nil {
		return err
	}
	a.patches = &container.Patches{}
	watcher := registry.NewWatcher(dir, files...)
	for {
		if err := a.untilChange(ctx, watcher, do); err != nil || ctx.Err() != nil {
			return err
		}
		a.note("%s", a.stderr.style(dim, "something changed: once more"))
	}
}

// untilChange does it once, and returns when something has changed.
func (a *app) untilChange(ctx context.Context, watcher *registry.Watcher, do func(context.Context) error) error {
	current, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	awaited := make(chan error, 1)
	go func() {
		awaited <- watcher.Await(ctx)
		stop(errChanged)
	}()
	err := do(current)
	if context.Cause(current) == nil {
		a.showFailure(err)
		a.note("%s", a.stderr.style(dim, "waiting for a change; Ctrl-C ends"))
	}
	if err := <-awaited; err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// showFailure prints what would be the last words of a single run.
func (a *app) showFailure(err error) {
	var code exitError
	if err != nil && !errors.As(err, &code) {
		a.stderr.fault(err)
	}
}

// watched are the files that the input comes from.
func (f *inputFlags) watched() []string {
	var names []string
	if path, isFile := strings.CutPrefix(f.input, "@"); isFile {
		names = append(names, path)
	}
	for _, assignment := range f.file {
		if _, path, ok := strings.Cut(assignment, "="); ok {
			names = append(names, path)
		}
	}
	return names
}

// checkWatch refuses what can't be done again and again.
func (a *app) checkWatch(name string, flags runFlags) error {
	switch {
	case flags.input.input == "-":
		return fault.New(fault.Input, "--watch can't read --input - more than once").
			WithHint("give the input by --input @FILE")
	case flags.detach:
		return fault.New(fault.Input, "--watch and --detach exclude one another")
	}
	dir, err := a.find(name)
	if err != nil {
		return err
	}
	return a.outAside(dir, flags.out)
}

// outAside refuses output files that land among the files that are watched: each run would be
// a change.
func (a *app) outAside(dir, out string) error {
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
		relative(absolute)+string(os.PathSeparator)).
		WithHint("name another directory with --out, or leave this one out in .dockerignore")
}
