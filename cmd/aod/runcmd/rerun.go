package runcmd

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/questions"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/history"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// RerunCommand is `aod rerun`.
func RerunCommand(env *cli.Env) *cobra.Command {
	var flags Flags
	var again rerunFlags
	cmd := &cobra.Command{
		Use:   "rerun ID",
		Short: "Run once more what aod run or a server has run",
		Long: `Start a new run with the input and the files of one that has ended, and follow it to
its end as aod run does: stdout is the result, and the exit code is the run's. The unit is
run as it is now. Without --server the last runs of aod run on this machine are known, too.
A flow can begin at a step of the old run, whose steps before that are taken over, and on a
server an agent at a turn: models and units are asked anew from there on.`,
		Example: "  aod rerun 0198c0de-…\n  aod rerun 0198c0de-… --detach\n  aod rerun 0198c0de-… --from failed\n" +
			"  aod rerun 0198c0de-… --from review#2 --set mark=9\n  aod rerun 0198c0de-… --from turn:3\n" +
			"  aod rerun 0198c0de-… --from failed --answer approve=reject",
		Args: cli.Exactly(1, "the id of a run"),
		RunE: func(cmd *cobra.Command, args []string) error { return rerun(cmd.Context(), env, args[0], flags, again) },
	}
	cmd.Flags().StringVarP(&flags.Out, "out", "o", "", "directory for output files (default aod-output/RUN-ID)")
	cmd.Flags().BoolVar(&flags.JSON, "json", false, "print the whole run record instead of the result")
	cmd.Flags().BoolVar(&flags.Detach, "detach", false, "on a server: print the new run's id and don't wait for it")
	cmd.Flags().StringVar(&again.from, "from", "",
		"of a flow: the address of a step, as aod flow steps lists them, or failed; of an agent: turn:N")
	cmd.Flags().StringArrayVarP(&again.set, "set", "s", nil,
		"with --from: what the state has before that step, `key=value`, JSON or a text; may be repeated")
	flags.registerAnswers(cmd.Flags())
	flags.History.Register(cmd.Flags())
	return cli.TellErrors(cmd)
}

// rerunFlags say where a flow begins again.
type rerunFlags struct {
	from string
	set  []string
}

func (f rerunFlags) rerun() (api.Rerun, error) {
	if f.from == "" && len(f.set) > 0 {
		return api.Rerun{}, fault.New(fault.Input, "--set needs --from: the step before which it is set")
	}
	from := api.Rerun{From: f.from}
	if len(f.set) == 0 {
		return from, nil
	}
	values := map[string]json.RawMessage{}
	for _, assignment := range f.set {
		key, text, err := runflags.Split("--set", assignment, "key=value")
		if err != nil {
			return from, err
		}
		raw := []byte(text)
		if !json.Valid(raw) {
			raw, _ = json.Marshal(text) // a text can be written
		}
		values[key] = raw
	}
	var err error
	from.Set, err = json.Marshal(values)
	return from, err
}

func rerun(ctx context.Context, env *cli.Env, id string, flags Flags, again rerunFlags) error {
	from, err := again.rerun()
	if err != nil {
		return err
	}
	past, server, err := runlist.Find(env, id)
	if err != nil {
		return err
	}
	if server == nil {
		return rerunHere(ctx, env, past, flags, from)
	}
	if err := flags.refuseAnswers(); err != nil {
		return err
	}
	return Start(ctx, env, server, flags, func(ctx context.Context) (api.Record, error) {
		return server.Runs.Rerun(ctx, id, from)
	})
}

// rerunHere runs the input of a kept run again, with its unit as it is now.
func rerunHere(ctx context.Context, env *cli.Env, past history.Past, flags Flags, from api.Rerun) error {
	if flags.Detach {
		return fault.New(fault.Input, "--detach needs a server that goes on with the run").
			WithHint("start one with `aod serve` and name it with --server URL")
	}
	c, err := lookup.LoadDir(env, past.Source.Dir)
	if err != nil {
		return err
	}
	id, out, err := flags.place()
	if err != nil {
		return err
	}
	flags.Given = runflags.Given{File: past.Source.UnitConfig, MayCall: past.Source.MayCall}
	flags.Sources = runflags.Sources{
		Models: runflags.Models{File: past.Source.Models}, Upstreams: past.Source.Upstreams,
		Secrets: runflags.PastSecrets(past.Source.Secrets),
	}
	u, err := flags.Given.Unit(c, flags.Sources.Upstreams)
	if err != nil {
		return err
	}
	again := run.Request{Unit: u, Timeout: past.Timeout, Start: past.Source.Start}
	if err := inputAgain(env, &again, past); err != nil {
		return err
	}
	req := orchestrator.Request{
		Request: again, ID: id, OutDir: out, Find: lookup.Callees(env, u, c), RerunOf: past.Record.ID, From: from,
		Answer: questions.ReadGiven(env, flags.answers).Answer,
	}
	return runHere(ctx, env, c.Dir, req, flags)
}

func inputAgain(env *cli.Env, again *run.Request, past history.Past) (err error) {
	if err := run.CheckRerun(past.Record); err != nil {
		return err
	}
	if again.Input, err = contract.Decode(past.Record.Input, contract.DefaultMaxBytes); err != nil {
		return err
	}
	if again.Placed, err = runlist.History(env).Inputs(past.Record.ID); err != nil {
		return fmt.Errorf("read input files: %w", err)
	}
	if past.NoProject {
		return fault.New(fault.Input, "the workspace of this run was too large to be kept").
			WithHint("run it with --workspace again")
	}
	if again.Project, err = runlist.History(env).Project(past.Record.ID); err != nil {
		return err
	}
	if past.NoFiles && len(again.Placed) == 0 && len(again.Unit.Contract.Input.FileRefs(again.Input)) > 0 {
		return fault.New(fault.Input, "the files of this run were too large to be kept").
			WithHint("run it with --file again")
	}
	return nil
}
