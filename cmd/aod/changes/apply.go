package changes

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/internal/workspace"
)

// applyFlags say where changes go.
type applyFlags struct {
	dir          string
	check        bool
	repositories bool
}

// ApplyCommand is `aod apply`.
func ApplyCommand(env *cli.Env) *cobra.Command {
	var flags applyFlags
	cmd := &cobra.Command{
		Use:   "apply RUN|SESSION",
		Short: "Bring what an agent changed back to the project",
		Long: `Write what a run made of the files that --workspace gave it: all of it, or nothing. Each file
must still be what the run got; else nothing is written, and each conflict is named. Nothing is
written through a link or into .git, and no repository is made: git and the like start programs
that one names. A killed apply is ended by the same command. Of a session it is what its turns
made so far: what was applied after an earlier turn may be there already, or is changed further.`,
		Example: "  aod apply 0198c0de-…\n  aod apply 0198c0de-… --check\n  aod apply 0198c0de-… --dir ~/src/shop",
		Args:    cli.Exactly(1, "the id of a run or a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return apply(cmd.Context(), env, args[0], flags)
		},
	}
	cmd.Flags().StringVar(&flags.dir, "dir", ".", "the directory of the project")
	cmd.Flags().BoolVar(&flags.check, "check", false, "write nothing, and say whether it could be")
	cmd.Flags().BoolVar(&flags.repositories, "with-repositories", false,
		"also make or change repositories that aren't in a .git: fixtures that you have read")
	return cmd
}

func apply(ctx context.Context, env *cli.Env, id string, flags applyFlags) error {
	of, err := changes(ctx, env, id)
	if err != nil {
		return err
	}
	found, err := of.list(ctx)
	if err != nil {
		return err
	}
	opts := workspace.ApplyOptions{
		Run: of.id, Check: flags.check, Repositories: flags.repositories, Open: of.open(ctx),
	}
	if of.session != "" {
		opts.Earlier = func() ([]api.Change, error) { return of.earlier(ctx) }
	}
	err = workspace.Apply(flags.dir, found.Changes, opts)
	if fault.Is(err, fault.Exists) {
		env.Note("%s", fault.Public(err).Msg)
		return nil
	}
	if err != nil {
		return err
	}
	verb := "applied"
	if flags.check {
		verb = "can be applied"
	}
	env.Note("%s %s", verb, sumOfChanges(found))
	return nil
}
