package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
)

func (a *app) scheduleCommand() *cobra.Command {
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
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.scheduleAddCommand(), a.scheduleApplyCommand(), a.scheduleListCommand(), a.scheduleShowCommand(),
		a.scheduleNextCommand(),
		a.scheduleHistoryCommand(), a.scheduleRunCommand(), a.scheduleRmCommand(),
		a.schedulePauseCommand("pause", "Pause a schedule: it starts nothing until it is resumed", (*client.Client).
			PauseSchedule),
		a.schedulePauseCommand("resume", "Have a paused schedule go on", (*client.Client).ResumeSchedule),
	)
	for _, sub := range cmd.Commands() {
		if strings.Contains(sub.Use, " NAME") && sub.Name() != "add" {
			sub.ValidArgsFunction = a.offer(first(a.scheduleNames), cobra.ShellCompDirectiveNoFileComp)
		}
	}
	return cmd
}

// scheduleNames completes the names of a server's schedules.
func (a *app) scheduleNames(ctx context.Context, _ []string, _ string) []cobra.Completion {
	server, err := a.connect()
	if err != nil {
		return nil
	}
	var names []cobra.Completion
	for s, err := range server.Schedules(ctx) {
		if err != nil || len(names) == maxPage {
			break
		}
		names = append(names, cobra.CompletionWithDesc(cell(s.Name), cell(s.Unit+" "+whenText(s.ScheduleSpec))))
	}
	return names
}

func (a *app) scheduleListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the schedules of a server",
		Long:    "List the schedules of a server, the newest first.",
		Example: "  aod schedule list\n  aod schedule list --json | jq -r .name",
		Args:    exactly(0, "nothing but flags"),
		RunE: a.onServer(func(ctx context.Context, server *client.Client, _ []string) error {
			titles := []string{"NAME", "UNIT", "WHEN", "STATE", "NEXT", "LAST", "PROBLEM"}
			return tabled(a, server.Schedules(ctx), asJSON, "there are no schedules", titles,
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

// whenText says when a schedule is due.
func whenText(s api.ScheduleSpec) string {
	switch {
	case s.Cron != "":
		return strings.TrimSpace(s.Cron + " " + s.Timezone)
	case s.Every != "":
		return "every " + s.Every
	}
	return strings.TrimSpace("at " + s.At + " " + s.Timezone)
}

// dueText says when a schedule is due next, "" for never.
func dueText(s api.Schedule) string {
	if s.Next == nil {
		return ""
	}
	return placeTime(*s.Next, s.Timezone)
}

// placeTime writes a time as clocks in a time zone show it, with the offset that holds there then.
func placeTime(t time.Time, zone string) string {
	place, err := time.LoadLocation(zone) // "" is UTC
	if err != nil {
		place = time.UTC
	}
	return offsetText(t.In(place))
}

func offsetText(t time.Time) string { return t.Format("2006-01-02 15:04:05 -07:00") }

// lastText says what became of an occurrence.
func lastText(o *api.Occurrence) string {
	if o == nil {
		return ""
	}
	return string(o.Outcome) + " " + ageText(time.Since(o.Fired)) + " ago"
}

func (a *app) scheduleShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show all that is known of a schedule",
		Example: "  aod schedule show nightly\n  aod schedule show nightly --json | jq .next",
		Args:    exactly(1, "the name of a schedule"),
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			s, err := server.Schedule(ctx, args[0])
			return shown(a, s, err, asJSON, a.schedulePage)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the schedule as a JSON object")
	return cmd
}

func (a *app) schedulePage(s api.Schedule) error {
	page := runPage{out: a.stdout}
	page.field("schedule", joined(s.Name, string(s.State)))
	page.field("unit", s.Unit)
	page.field("when", whenText(s.ScheduleSpec))
	page.field("next", dueText(s))
	page.field("problem", s.Problem)
	page.field("note", s.Note)
	page.field("missed", joined(string(cmp.Or(s.Missed, api.MissedLast)), "within "+cmp.Or(s.Grace, "1h")))
	page.field("overlap", string(cmp.Or(s.Overlap, api.OverlapSkip)))
	page.field("jitter", s.Jitter)
	if s.Start != nil {
		page.field("start", placeTime(*s.Start, s.Timezone))
	}
	if s.Until != nil {
		page.field("until", placeTime(*s.Until, s.Timezone))
	}
	if s.Count > 0 {
		page.field("count", fmt.Sprintf("%d of %d", s.Fired, s.Count))
	}
	page.field("timeout", s.Timeout)
	if s.Ask {
		page.field("ask", "its runs may ask people")
	}
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		page.field("metadata", key+"="+s.Metadata[key])
	}
	page.field("input", string(s.Input))
	for _, f := range s.Files {
		page.field("file", fmt.Sprintf("%s  %s  sha256:%s", f.Name, bytesText(f.SizeBytes), f.SHA256))
	}
	if s.Last != nil {
		page.field("last",
			strings.TrimSpace(joined(placeTime(s.Last.Planned, s.Timezone), outcomeText(*s.Last))+" "+s.Last.Run))
		page.field("", s.Last.Reason)
	}
	page.field("fired", plural(s.Fired, "time"))
	page.field("created", timeText(s.CreatedAt))
	page.field("changed", timeText(s.ChangedAt))
	return nil
}

func outcomeText(o api.Occurrence) string {
	if o.Manual {
		return string(o.Outcome) + " by hand"
	}
	return string(o.Outcome)
}

func (a *app) scheduleNextCommand() *cobra.Command {
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
		Args: atMostOne("the name of a schedule, or nothing"),
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			return a.nextTimes(ctx, server, args, when, n, asJSON)
		}),
	}
	when.register(cmd.Flags())
	cmd.Flags().IntVarP(&n, "limit", "n", 10, "how many, at most 100")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print them as a JSON object")
	return cmd
}

func (a *app) nextTimes(
	ctx context.Context, server *client.Client, args []string, when timeFlags, n int, asJSON bool,
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
		times, err = server.PreviewTimes(ctx, spec, n)
	default:
		times, err = server.NextTimes(ctx, args[0], n)
	}
	if err != nil {
		return err
	}
	if asJSON {
		return a.stdout.json(api.ScheduledTimes{Times: times})
	}
	for _, t := range times {
		a.stdout.line("%s  %s", t.Format("Mon"), offsetText(t))
	}
	if len(times) == 0 {
		a.note("there are none")
	}
	return nil
}

func (a *app) scheduleHistoryCommand() *cobra.Command {
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
		Args: exactly(1, "the name of a schedule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.scheduleHistory(cmd.Context(), args[0], limit, asJSON)
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most so many, the youngest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a time")
	return cmd
}

func (a *app) scheduleHistory(ctx context.Context, name string, limit int, asJSON bool) error {
	if limit < 1 {
		return fault.New(fault.Input, "--limit %d is no number of times", limit)
	}
	server, err := a.connect()
	if err != nil {
		return err
	}
	s, err := server.Schedule(ctx, name)
	if err != nil {
		return err
	}
	titles := []string{"PLANNED", "LATE", "OUTCOME", "RUN", "REASON"}
	return tabled(a, firstOf(limit, server.Occurrences(ctx, name)), asJSON, "there was none yet", titles,
		func(o api.Occurrence) []string {
			late := roundTime(time.Duration(o.LateMS) * time.Millisecond)
			return []string{placeTime(o.Planned, s.Timezone), late.String(), outcomeText(o), o.Run, o.Reason}
		})
}

func (a *app) scheduleRunCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Start a run of a schedule now",
		Long: `Start a run of a schedule now, whatever its times and its state are, and follow it to its end as
aod run does: stdout is the result, and the exit code is the run's.`,
		Example: "  aod schedule run nightly\n  aod schedule run nightly --detach",
		Args:    exactly(1, "the name of a schedule"),
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			return a.start(ctx, server, flags, func(ctx context.Context) (api.Record, error) {
				return server.RunSchedule(ctx, args[0])
			})
		}),
	}
	cmd.Flags().StringVarP(&flags.out, "out", "o", "", "directory for output files (default aod-output/RUN-ID)")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print the whole run record instead of the result")
	cmd.Flags().BoolVar(&flags.detach, "detach", false, "print the run's id and don't wait for it")
	return cmd
}

func (a *app) scheduleRmCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Short:   "Remove a schedule with its history",
		Long:    "Remove a schedule with its history. Its runs stay, and those that go on do so.",
		Example: "  aod schedule rm nightly",
		Args:    exactly(1, "the name of a schedule"),
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			if err := server.DeleteSchedule(ctx, args[0]); err != nil {
				return err
			}
			a.note("%s is gone", args[0])
			return nil
		}),
	}
}

// schedulePauseCommand pauses or resumes a schedule.
func (a *app) schedulePauseCommand(
	verb, short string, do func(*client.Client, context.Context, string) (api.Schedule, error),
) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " NAME",
		Short:   short,
		Long:    short + ".\nRuns that go on aren't touched. What is due while it is paused is left out.",
		Example: "  aod schedule " + verb + " nightly",
		Args:    exactly(1, "the name of a schedule"),
		RunE: a.onServer(func(ctx context.Context, server *client.Client, args []string) error {
			s, err := do(server, ctx, args[0])
			if err == nil {
				a.note("%s is %s%s", printable(s.Name), s.State, nextText(s))
			}
			return err
		}),
	}
}

// nextText is the end of a sentence about a schedule.
func nextText(s api.Schedule) string {
	if s.Next == nil || s.State == api.SchedulePaused {
		return ""
	}
	return ", next " + dueText(s)
}
