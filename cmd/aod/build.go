package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/runtime"
)

func (a *app) buildCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "build DIR|NAME",
		Short: "Build a capsule's image",
		Long: `Build a capsule's image and print its reference. The tag holds a digest of the build
context (what .dockerignore leaves of the directory), so that the same content is built
once. aod run does this by itself.`,
		Example: "  aod build ./my-capsule\n  docker run --rm -it --entrypoint sh $(aod build ./my-capsule)",
		Args:    exactly(1, "one directory or name of a capsule"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.build(cmd.Context(), args[0]) },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "base",
		Short: "Build the base image aod/base of this version",
		Args:  exactly(0, "nothing"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.buildBase(cmd.Context()) },
	})
	return cmd
}

func (a *app) build(ctx context.Context, name string) error {
	c, err := a.load(name)
	if err != nil {
		return err
	}
	return a.withLocal(ctx, func(l *local) error {
		view := newView(a.stderr, c.Name, a.quiet)
		_, ref, built, err := l.containers.Build(ctx, unit.Of(c), func(e runtime.BuildEvent) { view.build(e) })
		view.close()
		if err != nil {
			return err
		}
		if !built {
			a.note("nothing to do: %s is up to date", c.Name)
		}
		a.stdout.line("%s", ref)
		return nil
	})
}

func (a *app) buildBase(ctx context.Context) error {
	return a.withLocal(ctx, func(l *local) error {
		view := newView(a.stderr, "base", a.quiet)
		defer view.close()
		return l.containers.EnsureBase(ctx, func(e runtime.BuildEvent) { view.build(e) })
	})
}

// plural writes a number of things in English.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
