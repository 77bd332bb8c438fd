package schedules

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
)

// timeFlags say when something is due.
type timeFlags struct {
	cron, timezone, every, start, at, jitter, until string
	count                                           int
}

func (f *timeFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.cron, "cron", "",
		"when: minute, hour, day, month, day of the week, e.g. '30 2 * * 1-5'; or @daily and its kin")
	flags.StringVar(&f.timezone, "timezone", "", "of --cron and --at: a name such as Europe/Berlin (default UTC)")
	flags.StringVar(&f.every, "every", "", "when: each time after so long, e.g. 15m, at least 10s")
	flags.StringVar(&f.start, "start", "",
		"where the grid of --every begins, e.g. 2026-12-01T09:00:00+01:00 (default: now)")
	flags.StringVar(&f.at, "at", "", "when: once, e.g. 2026-12-01T09:00")
	flags.StringVar(&f.until, "until", "", "there are no runs after this time, e.g. 2026-12-31T23:59:59Z")
	flags.IntVar(&f.count, "count", 0, "there are no more runs than this")
}

// spec returns what the flags say. The server judges it.
func (f timeFlags) spec() (api.ScheduleSpec, error) {
	if f.count < 0 {
		return api.ScheduleSpec{}, fault.New(fault.Input, "--count must be positive, not %d", f.count)
	}
	spec := api.ScheduleSpec{Cron: f.cron, Timezone: f.timezone, Every: f.every, At: f.at, Count: f.count}
	var err error
	if spec.Start, err = timeFlag("--start", f.start); err != nil {
		return spec, err
	}
	spec.Until, err = timeFlag("--until", f.until)
	return spec, err
}

// timeFlag reads a time; nil where there is none.
func timeFlag(flag, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, fault.New(fault.Input, "%s %q is not a time with an offset", flag, text).
			WithHint("write it as 2026-12-01T09:00:00+01:00, or with Z for UTC")
	}
	return &t, nil
}

// scheduleFlags say what a schedule is to do, and when.
type scheduleFlags struct {
	timeFlags
	unit, missed, grace, overlap, note string
	ask, replace, json                 bool
	run                                runcmd.Flags // input, timeout and metadata
}

func addCommand(env *cli.Env) *cobra.Command {
	var flags scheduleFlags
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a schedule on a server",
		Long: `Make a schedule: it runs a unit of the server with an input, as aod run does, at each of its
times. One of --cron, --every and --at says when. The input must satisfy the unit's contract
now, and again at each time.`,
		Example: `  aod schedule add nightly --unit report --cron '30 2 * * 1-5' --timezone Europe/Berlin
  aod schedule add poll --unit fetch --every 15m --set source=a --overlap cancel
  aod schedule add once --unit report --at 2026-12-01T09:00 --file table=sales.csv`,
		Args: cli.Exactly(1, "the name of the schedule to make"),
		RunE: func(cmd *cobra.Command, args []string) error { return addSchedule(cmd.Context(), env, args[0], flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.unit, "unit", "", "what to run: the name of a unit of the server")
	flags.register(f)
	f.StringVar(&flags.missed, "missed", "",
		"what becomes of times that pass while no server runs: last, skip or all (default last)")
	f.StringVar(&flags.grace, "grace", "", "for how long those may be made up for (default 1h)")
	f.StringVar(&flags.overlap, "overlap", "",
		"what becomes of a time at which a run still goes on: skip, queue, cancel or allow (default skip)")
	f.StringVar(&flags.jitter, "jitter", "", "be late by up to so much, always the same for a name, e.g. 5m")
	flags.run.Input.Register(f)
	f.DurationVar(&flags.run.Timeout, "timeout", 0, "stop each run after this time, e.g. 30s (default: the unit's)")
	flags.run.Meta.Register(f, "what its runs are about, for aod ps --meta")
	f.BoolVar(&flags.ask, "ask", false, "its runs may ask people; else what they ask is denied at once")
	f.StringVar(&flags.note, "note", "", "for people: what it is for")
	f.BoolVar(&flags.replace, "replace", false, "replace a schedule of this name, whose history stays")
	f.BoolVar(&flags.json, "json", false, "print the schedule as a JSON object")
	return cmd
}

func addSchedule(ctx context.Context, env *cli.Env, name string, flags scheduleFlags) error {
	if err := api.CheckScheduleName(name); err != nil {
		return err
	}
	if flags.unit == "" {
		return fault.New(fault.Input, "--unit is missing: the name of what to run").
			WithHint("`aod units` lists what the server has")
	}
	spec, err := flags.spec()
	if err != nil {
		return err
	}
	server, err := env.Connect()
	if err != nil {
		return err
	}
	submission, err := runcmd.Submission(ctx, env, server, flags.unit, flags.run)
	if err != nil {
		return err
	}
	spec.Input, spec.Metadata = submission.Input, submission.Metadata
	put := server.Schedules.Add
	if flags.replace {
		put = server.Schedules.Put
	}
	schedule, created, err := put(ctx, name, spec, submission.Files)
	if err != nil {
		return err
	}
	if flags.json {
		return env.Out.JSON(schedule)
	}
	verb := api.ScheduleUnchanged
	switch {
	case created:
		verb = api.ScheduleMade
	case flags.replace:
		verb = api.ScheduleChanged
	}
	env.Note("%s %s%s", verb, name, nextText(schedule))
	return nil
}

// spec is what all the flags say but those of the input.
func (f scheduleFlags) spec() (api.ScheduleSpec, error) {
	spec, err := f.timeFlags.spec()
	if f.run.Timeout < 0 {
		return spec, fault.New(fault.Input, "--timeout must be positive, not %v", f.run.Timeout)
	}
	if f.run.Timeout > 0 {
		spec.Timeout = f.run.Timeout.String()
	}
	spec.Unit, spec.Note, spec.Ask = f.unit, f.note, f.ask
	spec.Missed, spec.Grace, spec.Overlap, spec.Jitter = api.MissedPolicy(f.missed), f.grace,
		api.OverlapPolicy(f.overlap), f.jitter
	return spec, err
}
