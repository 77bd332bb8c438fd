package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// maxPage is the largest page that a server lists.
const maxPage = 1000

// listFlags select runs.
type listFlags struct {
	all      bool
	asking   bool
	unit     string
	schedule string
	states   []string
	meta     metaFlags
	limit    int
	json     bool
}

func (f *listFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.unit, "unit", "", "only runs of this unit")
	flags.StringVar(&f.schedule, "schedule", "", "only runs that this schedule of a server started")
	flags.StringSliceVar(&f.states, "state", nil, "only runs in this state, e.g. failed; may be repeated")
	f.meta.register(flags, "only runs with this metadata")
	flags.IntVarP(&f.limit, "limit", "n", 50, "at most so many, the newest")
	flags.BoolVar(&f.json, "json", false, "print a JSON object a run")
}

func (a *app) psCommand() *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the runs that a server has going",
		Example: "  aod ps\n  aod ps --waiting\n  aod ps -a --unit hello --state failed,timeout\n" +
			"  aod ps -a --meta user_id=ada --meta mode=LIVE\n  aod ps -a --json | jq -r .id",
		Args: exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), flags) },
	}
	cmd.Flags().BoolVarP(&flags.all, "all", "a", false, "also runs that have ended")
	cmd.Flags().BoolVar(&flags.asking, "waiting", false, "only runs that wait for a person's answer")
	flags.register(cmd.Flags())
	return cmd
}

// list prints runs, newest first.
func (a *app) list(ctx context.Context, flags listFlags) error {
	filter, err := flags.filter()
	if err != nil {
		return err
	}
	runs, err := a.serverRuns(ctx, filter, flags.limit+1)
	if err != nil {
		return err
	}
	if err := a.showNewest(runs, flags); err != nil {
		return err
	}
	switch {
	case len(runs) == 0 && filter.Waiting:
		a.note("no run waits for an answer")
	case len(runs) == 0 && filter.Active:
		a.note("nothing runs or waits; `aod ps -a` also shows the runs that have ended")
	}
	return nil
}

// listAll is list, and without --server it knows the kept runs of this machine as well.
func (a *app) listAll(ctx context.Context, flags listFlags) error {
	filter, err := flags.filter()
	if err != nil {
		return err
	}
	var past []api.Summary
	if a.server == "" {
		past = a.pastRuns(filter)
	}
	runs, err := a.serverRuns(ctx, filter, flags.limit+1)
	if err != nil && len(past) == 0 {
		return err
	}
	if _, none := a.localServer(); err != nil && none == nil {
		a.note("%s the server's runs are missing: %s", a.stderr.style(yellow, "warning:"),
			printable(fault.Public(err).Msg))
	}
	return a.showNewest(newestFirst(past, runs), flags)
}

// serverRuns returns that many runs of a server at most.
func (a *app) serverRuns(ctx context.Context, filter api.Filter, most int) ([]api.Summary, error) {
	server, err := a.connect()
	if err != nil {
		return nil, err
	}
	var runs []api.Summary
	for run, err := range firstOf(most, server.Runs(ctx, filter)) {
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// showNewest prints up to the limit, and says when there are more.
func (a *app) showNewest(runs []api.Summary, flags listFlags) error {
	shown := runs[:min(len(runs), flags.limit)]
	if err := a.showRuns(shown, flags.json); err != nil {
		return err
	}
	if len(runs) > len(shown) {
		a.note("there are more than these %d: see --limit", flags.limit)
	}
	return nil
}

// filter requests one run more than is shown, to know whether there are more. A state that
// runs end in selects finished runs only.
func (f listFlags) filter() (api.Filter, error) {
	if f.limit < 1 {
		return api.Filter{}, fault.New(fault.Input, "--limit %d is no number of runs", f.limit)
	}
	metadata, err := f.meta.read()
	if err != nil {
		return api.Filter{}, err
	}
	states, err := statesOf(f.states)
	return api.Filter{
		Metadata: metadata,
		Unit:     f.unit, Schedule: f.schedule, States: states, Active: !f.all && len(states) == 0, Waiting: f.asking,
		Limit: min(f.limit+1, maxPage),
	}, err
}

func statesOf(names []string) ([]api.State, error) {
	known := []api.State{
		api.Idle, api.Starting, api.Running, api.Completed,
		api.Failed, api.Timeout, api.Cancelled, api.Cleanup,
	}
	var states []api.State
	for _, name := range names {
		state := api.StateOf(api.Status(strings.ToLower(name)))
		if !slices.Contains(known, state) {
			return nil, fault.New(fault.Input, "there is no state %q", name).
				WithHint("the states are queued, starting, running, completed, failed, timeout, cancelled and cleanup")
		}
		states = append(states, state)
	}
	return states, nil
}

func (a *app) showRuns(runs []api.Summary, asJSON bool) error {
	now := time.Now()
	titles := []string{"ID", "UNIT", "STATE", "RETRIES", "AGE", "DURATION", "ERROR"}
	return tabled(a, allOf(runs), asJSON, "", titles, func(run api.Summary) []string {
		return []string{
			run.ID, run.Unit, string(run.State.Status()), fmt.Sprint(run.Retries),
			ageText(now.Sub(run.CreatedAt)), durationText(run.StartedAt, run.FinishedAt, now), errorKind(run.Error),
		}
	})
}

func newTable(w io.Writer, titles ...string) *tabwriter.Writer {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row(table, titles...)
	return table
}

// row adds a line of cells. An empty cell is shown as "-", so that a program can tell the
// columns apart.
func row(table *tabwriter.Writer, cells ...string) {
	for i, c := range cells {
		if cells[i] = cell(c); cells[i] == "" {
			cells[i] = "-"
		}
	}
	_, _ = fmt.Fprintln(table, strings.Join(cells, "\t")) // Flush returns the error
}

// cell keeps a server's text on one line and in its column.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(printable(text))
}

func errorKind(e *api.RunError) string {
	if e == nil {
		return ""
	}
	return e.Kind
}

// ageText says roughly how long ago something was.
func ageText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// durationText is a run's duration, up to now if it hasn't ended; "" before its start.
func durationText(from, to *time.Time, now time.Time) string {
	if from == nil {
		return ""
	}
	if to != nil {
		now = *to
	}
	return roundTime(now.Sub(*from)).String()
}

// roundTime keeps three digits or so.
func roundTime(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
