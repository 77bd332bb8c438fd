package runs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// MaxPage is the largest page that a server lists.
const MaxPage = 1000

// listFlags select runs.
type listFlags struct {
	all      bool
	asking   bool
	unit     string
	schedule string
	by       string
	states   []string
	meta     runflags.Meta
	limit    int
	json     bool
}

func (f *listFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.unit, "unit", "", "only runs of this unit")
	flags.StringVar(&f.schedule, "schedule", "", "only runs that this schedule of a server started")
	flags.StringVar(&f.by, "by", "", "only runs that the token of this name asked a server for")
	flags.StringSliceVar(&f.states, "state", nil, "only runs in this state, e.g. failed; may be repeated")
	f.meta.Register(flags, "only runs with this metadata")
	flags.IntVarP(&f.limit, "limit", "n", 50, "at most so many, the newest")
	flags.BoolVar(&f.json, "json", false, "print a JSON object a run")
}

// PsCommand is `aod ps`.
func PsCommand(env *cli.Env) *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the runs that a server has going",
		Example: "  aod ps\n  aod ps --waiting\n  aod ps -a --unit hello --state failed,timeout\n" +
			"  aod ps -a --meta user_id=ada --meta mode=LIVE\n  aod ps -a --json | jq -r .id",
		Args: cli.Exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error { return list(cmd.Context(), env, flags) },
	}
	cmd.Flags().BoolVarP(&flags.all, "all", "a", false, "also runs that have ended")
	cmd.Flags().BoolVar(&flags.asking, "waiting", false, "only runs that wait for a person's answer")
	flags.register(cmd.Flags())
	return cmd
}

// list prints runs, newest first.
func list(ctx context.Context, env *cli.Env, flags listFlags) error {
	filter, err := flags.filter()
	if err != nil {
		return err
	}
	runs, err := runlist.Served(ctx, env, filter, flags.limit+1)
	if err != nil {
		return err
	}
	if err := showNewest(env, runs, flags); err != nil {
		return err
	}
	switch {
	case len(runs) == 0 && filter.Waiting:
		env.Note("no run waits for an answer")
	case len(runs) == 0 && filter.Active:
		env.Note("nothing runs or waits; `aod ps -a` also shows the runs that have ended")
	}
	return nil
}

// listAll is list, and without --server it knows the kept runs of this machine as well.
func listAll(ctx context.Context, env *cli.Env, flags listFlags) error {
	filter, err := flags.filter()
	if err != nil {
		return err
	}
	var past []api.Summary
	if env.Server == "" {
		past = runlist.Kept(env, filter)
	}
	runs, err := runlist.Served(ctx, env, filter, flags.limit+1)
	if err != nil && len(past) == 0 {
		return err
	}
	if _, none := env.LocalServer(); err != nil && none == nil {
		env.Note("%s the server's runs are missing: %s", env.Err.Style(ui.Yellow, "warning:"),
			ui.Printable(fault.Public(err).Msg))
	}
	return showNewest(env, runlist.NewestFirst(past, runs), flags)
}

// showNewest prints up to the limit, and says when there are more.
func showNewest(env *cli.Env, runs []api.Summary, flags listFlags) error {
	shown := runs[:min(len(runs), flags.limit)]
	if err := showRuns(env, shown, flags.json); err != nil {
		return err
	}
	if len(runs) > len(shown) {
		env.Note("there are more than these %d: see --limit", flags.limit)
	}
	return nil
}

// filter requests one run more than is shown, to know whether there are more. A state that
// runs end in selects finished runs only.
func (f listFlags) filter() (api.Filter, error) {
	if f.limit < 1 {
		return api.Filter{}, fault.New(fault.Input, "--limit must be positive, not %d", f.limit)
	}
	metadata, err := f.meta.Read()
	if err != nil {
		return api.Filter{}, err
	}
	states, err := statesOf(f.states)
	return api.Filter{
		Metadata: metadata,
		Unit:     f.unit, Schedule: f.schedule, By: f.by, States: states, Active: !f.all && len(states) == 0,
		Waiting: f.asking, Limit: min(f.limit+1, MaxPage),
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

func showRuns(env *cli.Env, runs []api.Summary, asJSON bool) error {
	now := time.Now()
	titles := []string{"ID", "UNIT", "STATE", "RETRIES", "AGE", "DURATION", "ERROR"}
	return cli.Table(env, cli.All(runs), asJSON, "", titles, func(run api.Summary) []string {
		return []string{
			run.ID, run.Unit, string(run.State.Status()), fmt.Sprint(run.Retries),
			ui.Age(now.Sub(run.CreatedAt)), ui.Took(run.StartedAt, run.FinishedAt, now), errorText(run.Error),
		}
	})
}

// errorText is a run's error in a list: its kind, its type, and how its message begins.
func errorText(e *api.RunError) string {
	if e == nil {
		return ""
	}
	what := e.Kind
	if e.Type != "" {
		what += ", " + e.Type
	}
	if line, _, _ := strings.Cut(e.Message, "\n"); line != "" {
		what += ": " + ui.Begin(line, maxError)
	}
	return what
}

// maxError is how much of an error's message stands in a list, in characters.
const maxError = 60
