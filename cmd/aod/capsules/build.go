package capsules

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/runtime"
)

// BuildCommand is `aod build`.
func BuildCommand(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "build DIR|NAME",
		Short: "Build a capsule's image",
		Long: `Build a capsule's image and print its reference. The tag holds a digest of the build
context (what .dockerignore leaves of the directory), so that the same content is built
once. aod run does this by itself.`,
		Example: "  aod build ./my-capsule\n  docker run --rm -it --entrypoint sh $(aod build ./my-capsule)",
		Args:    cli.Exactly(1, "one directory or name of a capsule"),
		RunE:    func(cmd *cobra.Command, args []string) error { return build(cmd.Context(), env, args[0]) },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "base",
		Short: "Build the base image aod/base of this version",
		Args:  cli.Exactly(0, "nothing"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return buildBase(cmd.Context(), env) },
	})
	return cmd
}

func build(ctx context.Context, env *cli.Env, name string) error {
	c, err := lookup.Load(env, name)
	if err != nil {
		return err
	}
	return cli.WithLocal(ctx, env, func(l *cli.Local) error {
		view := progress.New(env.Err, c.Name, env.Quiet)
		_, ref, built, err := l.Containers.Build(ctx, unit.Of(c), func(e runtime.BuildEvent) { view.Build(e) })
		view.Close()
		if err != nil {
			return err
		}
		if !built {
			env.Note("nothing to do: %s is up to date", c.Name)
		}
		env.Out.Line("%s", ref)
		return nil
	})
}

func buildBase(ctx context.Context, env *cli.Env) error {
	return cli.WithLocal(ctx, env, func(l *cli.Local) error {
		view := progress.New(env.Err, "base", env.Quiet)
		defer view.Close()
		return l.Containers.EnsureBase(ctx, func(e runtime.BuildEvent) { view.Build(e) })
	})
}
