// Package schedules is `aod schedule`: when a server runs a unit by itself. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package schedules

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/complete"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
	"github.com/agent-on-demand/aod/cmd/aod/runs"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// Command is `aod schedule`.
func Command(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Have a server run units at given times",
		Long: `Have a server run units at given times: by a cron expression in a time zone, each time after
so long, or once. Each time starts one run, never two, also where the server is killed or its
clock is set; what passed while no server ran is made up for as the schedule says.`,
		Example: `  aod schedule add nightly --unit report --cron '30 2 * * 1-5' --timezone Europe/Berlin
  aod schedule next nightly
  aod schedule list
  aod schedule apply -f schedules.yaml`,
		Args: cli.KnownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		addCommand(env), applyCommand(env), listCommand(env), showCommand(env),
		nextCommand(env), historyCommand(env), runCommand(env), rmCommand(env),
		pauseCommand(env, "pause", "Pause a schedule: it starts nothing until it is resumed",
			client.Schedules.Pause),
		pauseCommand(env, "resume", "Have a paused schedule go on", client.Schedules.Resume),
	)
	for _, sub := range cmd.Commands() {
		if strings.Contains(sub.Use, " NAME") && sub.Name() != "add" {
			sub.ValidArgsFunction = complete.First(env, namesOf(env), cobra.ShellCompDirectiveNoFileComp)
		}
	}
	return cmd
}

// namesOf completes the names of a server's schedules.
func namesOf(env *cli.Env) func(context.Context, []string, string) []cobra.Completion {
	return func(ctx context.Context, _ []string, _ string) []cobra.Completion {
		server, err := env.Connect()
		if err != nil {
			return nil
		}
		var names []cobra.Completion
		for s, err := range server.Schedules.List(ctx) {
			if err != nil || len(names) == runs.MaxPage {
				break
			}
			about := ui.Cell(s.Unit + " " + whenText(s.ScheduleSpec))
			names = append(names, cobra.CompletionWithDesc(ui.Cell(s.Name), about))
		}
		return names
	}
}

func listCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the schedules of a server",
		Long:    "List the schedules of a server, the newest first.",
		Example: "  aod schedule list\n  aod schedule list --json | jq -r .name",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, _ []string) error {
			titles := []string{"NAME", "UNIT", "WHEN", "STATE", "NEXT", "LAST", "PROBLEM"}
			return cli.Table(env, server.Schedules.List(ctx), asJSON, "there are no schedules", titles,
				func(s api.Schedule) []string {
					return []string{
						s.Name, s.Unit, whenText(s.ScheduleSpec), string(s.State), dueText(s),
						lastText(s.Last), s.Problem,
					}
				})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a schedule")
	return cmd
}

func nextCommand(env *cli.Env) *cobra.Command {
	var when timeFlags
	var n int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "next [NAME]",
		Short: "List the next times of a schedule, or of what could be one",
		Long: `List the next times of a schedule, each as clocks show it in its time zone, with the offset
that holds there then. Without a name those that --cron, --every or --at would have: nothing is made.`,
		Example: "  aod schedule next nightly -n 20\n  aod schedule next --cron '30 2 * * 1-5' --timezone " +
			"Europe/Berlin",
		Args: cli.AtMostOne("the name of a schedule, or nothing"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			return nextTimes(ctx, env, server, args, when, n, asJSON)
		}),
	}
	when.register(cmd.Flags())
	cmd.Flags().IntVarP(&n, "limit", "n", 10, "how many, at most 100")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them as a JSON object")
	return cmd
}

func nextTimes(
	ctx context.Context, env *cli.Env, server *client.Client, args []string, when timeFlags, n int, asJSON bool,
) error {
	spec, err := when.spec()
	if err != nil {
		return err
	}
	var times []time.Time
	switch given := spec.Cron != "" || spec.Every != "" || spec.At != ""; {
	case given == (len(args) == 1):
		return fault.New(fault.Input, "aod schedule next takes a name, or one of --cron, --every and --at").
			WithHint("see aod schedule next --help")
	case given:
		times, err = server.Schedules.Preview(ctx, spec, n)
	default:
		times, err = server.Schedules.Next(ctx, args[0], n)
	}
	if err != nil {
		return err
	}
	if asJSON {
		return env.Out.JSON(api.ScheduledTimes{Times: times})
	}
	for _, t := range times {
		env.Out.Line("%s  %s", t.Format("Mon"), offsetText(t))
	}
	if len(times) == 0 {
		env.Note("there are none")
	}
	return nil
}

func historyCommand(env *cli.Env) *cobra.Command {
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "List what became of the times of a schedule",
		Long: `List what became of the times of a schedule, the youngest first; a server keeps the last 1,000.

  started    it has a run
  waiting    for the end of a run of the schedule
  skipped    a run of the schedule went on
  missed     no server ran in time
  refused    the unit or the server didn't take it
  cancelled  the schedule was paused while it waited`,
		Example: "  aod schedule history nightly\n  aod schedule history nightly --json | jq -r 'select(.outcome == " +
			"\"refused\") | .reason'",
		Args: cli.Exactly(1, "the name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return history(cmd.Context(), env, args[0], limit, asJSON)
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most so many, the youngest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a time")
	return cmd
}

func history(ctx context.Context, env *cli.Env, name string, limit int, asJSON bool) error {
	if limit < 1 {
		return fault.New(fault.Input, "--limit must be positive, not %d", limit)
	}
	server, err := env.Connect()
	if err != nil {
		return err
	}
	s, err := server.Schedules.Get(ctx, name)
	if err != nil {
		return err
	}
	titles := []string{"PLANNED", "LATE", "OUTCOME", "RUN", "REASON"}
	rows := cli.First(limit, server.Schedules.Occurrences(ctx, name))
	return cli.Table(env, rows, asJSON, "there was none yet", titles,
		func(o api.Occurrence) []string {
			late := ui.RoundTime(time.Duration(o.LateMS) * time.Millisecond)
			return []string{placeTime(o.Planned, s.Timezone), late.String(), outcomeText(o), o.Run, o.Reason}
		})
}

func runCommand(env *cli.Env) *cobra.Command {
	var flags runcmd.Flags
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Start a run of a schedule now",
		Long: `Start a run of a schedule now, whatever its times and its state are, and follow it to its end as
aod run does: stdout is the result, and the exit code is the run's.`,
		Example: "  aod schedule run nightly\n  aod schedule run nightly --detach",
		Args:    cli.Exactly(1, "the name of a schedule"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			return runcmd.Start(ctx, env, server, flags, func(ctx context.Context) (api.Record, error) {
				return server.Schedules.Run(ctx, args[0])
			})
		}),
	}
	cmd.Flags().StringVarP(&flags.Out, "out", "o", "", "directory for output files (default aod-output/RUN-ID)")
	cmd.Flags().BoolVar(&flags.JSON, "json", false, "print the whole run record instead of the result")
	cmd.Flags().BoolVar(&flags.Detach, "detach", false, "print the run's id and don't wait for it")
	return cmd
}

func rmCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Short:   "Remove a schedule with its history",
		Long:    "Remove a schedule with its history. Its runs stay, and those that go on do so.",
		Example: "  aod schedule rm nightly",
		Args:    cli.Exactly(1, "the name of a schedule"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			if err := server.Schedules.Delete(ctx, args[0]); err != nil {
				return err
			}
			env.Note("%s is gone", args[0])
			return nil
		}),
	}
}

// pauseCommand pauses or resumes a schedule.
func pauseCommand(env *cli.Env,
	verb, short string, do func(client.Schedules, context.Context, string) (api.Schedule, error),
) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " NAME",
		Short:   short,
		Long:    short + ".\nRuns that go on aren't touched. What is due while it is paused is left out.",
		Example: "  aod schedule " + verb + " nightly",
		Args:    cli.Exactly(1, "the name of a schedule"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			s, err := do(server.Schedules, ctx, args[0])
			if err == nil {
				env.Note("%s is %s%s", ui.Printable(s.Name), s.State, nextText(s))
			}
			return err
		}),
	}
}
