// Package runlist knows which runs there are: the last ones of aod run on this machine, which are kept, and those of a
// server. It must not know commands.
//
// Its Go API may change with every release: see docs/stability.md.
package runlist

import (
	"context"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/orchestrator/history"
)

const (
	defaultHistory = 20
	maxHistory     = 1000
)

// HistoryFlag is how many of the last runs are kept.
type HistoryFlag int

// Register adds the flags to a command.
func (f *HistoryFlag) Register(flags *pflag.FlagSet) {
	most := defaultHistory
	if text := os.Getenv("AOD_HISTORY"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil {
			most = -1 // which open refuses
		}
	}
	flags.IntVar((*int)(f), "history", most,
		"keep so many of the last runs for aod runs, logs, flow and rerun; 0: none (AOD_HISTORY)")
}

// Check refuses a number out of bounds.
func (f *HistoryFlag) Check() error {
	if *f < 0 || *f > maxHistory {
		return fault.New(fault.Input, "--history and AOD_HISTORY take a number from 0 to %d", maxHistory)
	}
	return nil
}

// History is that of the data directory, to look at.
func History(env *cli.Env) *history.History { return history.New(env.Data, maxHistory) }

// Find returns a kept run of this machine; where server isn't nil, the run is to be asked for there.
func Find(env *cli.Env, id string) (past history.Past, server *client.Client, err error) {
	if env.Server == "" {
		if past, err = History(env).Get(id); !fault.Is(err, fault.NotFound) {
			return past, nil, err
		}
	}
	server, err = env.ConnectFor(id)
	return past, server, err
}

// Kept lists the kept runs that a filter chooses, newest first.
func Kept(env *cli.Env, f api.Filter) []api.Summary {
	var runs []api.Summary
	for _, past := range History(env).List() {
		r := past.Record
		if (f.Unit == "" || f.Unit == r.Unit) && (len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
			len(f.Metadata) == 0 && f.Schedule == "" && f.By == "" && !f.Active {
			runs = append(runs, summaryOf(r))
		}
	}
	return runs
}

func summaryOf(r api.Record) api.Summary {
	return api.Summary{
		ID: r.ID, Unit: r.Unit, Kind: r.Kind, Parent: r.Parent, Root: r.Root, Metadata: r.Metadata, State: r.State,
		Status:  r.State.Status(),
		Outcome: r.Outcome, ExitCode: r.ExitCode, Error: r.Error, Retries: r.Retries, Timings: r.Timings,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
	}
}

// NewestFirst merges lists of runs.
func NewestFirst(lists ...[]api.Summary) []api.Summary {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(x, y api.Summary) int {
		return y.CreatedAt.Compare(x.CreatedAt)
	})
	return all
}

// Served returns that many runs of a server at most.
func Served(ctx context.Context, env *cli.Env, filter api.Filter, most int) ([]api.Summary, error) {
	server, err := env.Connect()
	if err != nil {
		return nil, err
	}
	var runs []api.Summary
	for run, err := range cli.First(most, server.Runs.List(ctx, filter)) {
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}
