package schedules

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
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

func showCommand(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show all that is known of a schedule",
		Example: "  aod schedule show nightly\n  aod schedule show nightly --json | jq .next",
		Args:    cli.Exactly(1, "the name of a schedule"),
		RunE: cli.OnServer(env, func(ctx context.Context, server *client.Client, args []string) error {
			s, err := server.Schedules.Get(ctx, args[0])
			return cli.Show(env, s, err, asJSON, func(s api.Schedule) error { return page(env, s) })
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the schedule as a JSON object")
	return cmd
}

func page(env *cli.Env, s api.Schedule) error {
	shown := ui.Page{Out: env.Out}
	shown.Field("schedule", ui.Joined(s.Name, string(s.State)))
	shown.Field("unit", s.Unit)
	shown.Field("when", whenText(s.ScheduleSpec))
	shown.Field("next", dueText(s))
	shown.Field("problem", s.Problem)
	shown.Field("note", s.Note)
	shown.Field("missed", ui.Joined(string(cmp.Or(s.Missed, api.MissedLast)), "within "+cmp.Or(s.Grace, "1h")))
	shown.Field("overlap", string(cmp.Or(s.Overlap, api.OverlapSkip)))
	shown.Field("jitter", s.Jitter)
	if s.Start != nil {
		shown.Field("start", placeTime(*s.Start, s.Timezone))
	}
	if s.Until != nil {
		shown.Field("until", placeTime(*s.Until, s.Timezone))
	}
	if s.Count > 0 {
		shown.Field("count", fmt.Sprintf("%d of %d", s.Fired, s.Count))
	}
	shown.Field("timeout", s.Timeout)
	if s.Ask {
		shown.Field("ask", "its runs may ask people")
	}
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		shown.Field("metadata", key+"="+s.Metadata[key])
	}
	shown.Field("input", string(s.Input))
	for _, f := range s.Files {
		shown.Field("file", fmt.Sprintf("%s  %s  sha256:%s", f.Name, ui.Bytes(f.SizeBytes), f.SHA256))
	}
	if s.Last != nil {
		shown.Field("last",
			strings.TrimSpace(ui.Joined(placeTime(s.Last.Planned, s.Timezone), outcomeText(*s.Last))+" "+s.Last.Run))
		shown.Field("", s.Last.Reason)
	}
	shown.Field("fired", ui.Plural(s.Fired, "time"))
	shown.Field("created", ui.Time(s.CreatedAt))
	shown.Field("changed", ui.Time(s.ChangedAt))
	return nil
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
	return string(o.Outcome) + " " + ui.Age(time.Since(o.Fired)) + " ago"
}

func outcomeText(o api.Occurrence) string {
	if o.Manual {
		return string(o.Outcome) + " by hand"
	}
	return string(o.Outcome)
}

// nextText is the end of a sentence about a schedule.
func nextText(s api.Schedule) string {
	if s.Next == nil || s.State == api.SchedulePaused {
		return ""
	}
	return ", next " + dueText(s)
}
