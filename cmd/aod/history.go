package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/history"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

const (
	defaultHistory = 20
	maxHistory     = 1000
)

// historyFlag is how many of the last runs are kept.
type historyFlag int

func (f *historyFlag) register(flags *pflag.FlagSet) {
	most := defaultHistory
	if text := os.Getenv("AOD_HISTORY"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil {
			most = -1 // which open refuses
		}
	}
	flags.IntVar((*int)(f), "history", most,
		"keep so many of the last runs for aod runs, logs and rerun; 0: none (AOD_HISTORY)")
}

func (f *historyFlag) check() error {
	if *f < 0 || *f > maxHistory {
		return fault.New(fault.Input, "--history and AOD_HISTORY take a number from 0 to %d", maxHistory)
	}
	return nil
}

// history is that of the data directory, to look at.
func (a *app) history() *history.History { return history.New(a.data, maxHistory) }

// past returns a kept run of this machine; where server isn't nil, the run is to be asked for there.
func (a *app) past(id string) (past history.Past, server *client.Client, err error) {
	if a.server == "" {
		if past, err = a.history().Get(id); !fault.Is(err, fault.NotFound) {
			return past, nil, err
		}
	}
	server, err = a.connectFor(id)
	return past, server, err
}

// remember makes a run one that is kept.
func (a *app) remember(req *orchestrator.Request, dir string, flags runFlags) error {
	secrets, err := secretFiles(flags.secrets)
	if err != nil {
		return err
	}
	for name, path := range secrets {
		if secrets[name], err = filepath.Abs(path); err != nil {
			return fault.Wrap(fault.Input, err, "--secret %s: its path can't be used", name)
		}
	}
	req.History = history.New(a.data, int(flags.history))
	req.Source = history.Source{Dir: dir, Secrets: secrets, MayCall: flags.given.mayCall, Start: req.Start}
	for flag, path := range map[string]struct {
		given  string
		stored *string
	}{
		"--unit-config": {flags.given.file, &req.Source.UnitConfig},
		"--upstreams":   {flags.given.upstreams, &req.Source.Upstreams},
		"--models":      {flags.models.given, &req.Source.Models},
	} {
		if path.given == "" {
			continue
		}
		if *path.stored, err = filepath.Abs(path.given); err != nil {
			return fault.Wrap(fault.Input, err, "%s: its path can't be used", flag)
		}
	}
	return nil
}

// noteRun prints the id of a kept run where somebody is likely to want it: to a person, and
// of a run that failed.
func (a *app) noteRun(ended orchestrator.Ended, flags runFlags) {
	switch {
	case ended.Past != nil:
		a.note("%s the run could not be kept: %s", a.stderr.style(yellow, "warning:"), printable(ended.Past.Error()))
	case flags.history > 0 && (a.stderr.terminal || ended.Record.Outcome != api.Success):
		a.note("%s", a.stderr.style(dim, "run "+ended.Record.ID))
	}
}

// pastRuns lists the kept runs that a filter chooses, newest first.
func (a *app) pastRuns(f api.Filter) []api.Summary {
	var runs []api.Summary
	for _, past := range a.history().List() {
		r := past.Record
		if (f.Unit == "" || f.Unit == r.Unit) && (len(f.States) == 0 || slices.Contains(f.States, r.State)) &&
			len(f.Metadata) == 0 && f.Schedule == "" && !f.Active {
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

// newestFirst merges lists of runs.
func newestFirst(lists ...[]api.Summary) []api.Summary {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(x, y api.Summary) int {
		return y.CreatedAt.Compare(x.CreatedAt)
	})
	return all
}

// rerunHere runs the input of a kept run again, with its unit as it is now.
func (a *app) rerunHere(ctx context.Context, past history.Past, flags runFlags) error {
	if flags.detach {
		return fault.New(fault.Input, "--detach needs a server that goes on with the run").
			WithHint("start one with `aod serve` and name it with --server URL")
	}
	for name, path := range past.Source.Secrets {
		flags.secrets = append(flags.secrets, name+"="+path)
	}
	c, err := a.load(past.Source.Dir)
	if err != nil {
		return err
	}
	id, out, err := flags.place()
	if err != nil {
		return err
	}
	flags.given = givenFlags{
		file: past.Source.UnitConfig, mayCall: past.Source.MayCall,
		upstreams: past.Source.Upstreams,
	}
	flags.models.given = past.Source.Models
	u, err := flags.given.unit(c)
	if err != nil {
		return err
	}
	again := run.Request{Unit: u, Timeout: past.Timeout, Start: past.Source.Start}
	if err := a.inputAgain(&again, past); err != nil {
		return err
	}
	req := orchestrator.Request{Request: again, ID: id, OutDir: out, Find: a.callees(u, c), RerunOf: past.Record.ID}
	return a.runHere(ctx, c.Dir, req, flags)
}

func (a *app) inputAgain(again *run.Request, past history.Past) (err error) {
	if err := run.CheckRerun(past.Record); err != nil {
		return err
	}
	if again.Input, err = contract.Decode(past.Record.Input, contract.DefaultMaxBytes); err != nil {
		return err
	}
	if again.Placed, err = a.history().Inputs(past.Record.ID); err != nil {
		return fmt.Errorf("read input files: %w", err)
	}
	if past.NoProject {
		return fault.New(fault.Input, "the workspace of this run was too large to be kept").
			WithHint("run it with --workspace again")
	}
	if again.Project, err = a.history().Project(past.Record.ID); err != nil {
		return err
	}
	if past.NoFiles && len(again.Placed) == 0 && len(again.Unit.Contract.Input.FileRefs(again.Input)) > 0 {
		return fault.New(fault.Input, "the files of this run were too large to be kept").
			WithHint("run it with --file again")
	}
	return nil
}
