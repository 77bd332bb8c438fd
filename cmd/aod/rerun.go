package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

func (a *app) rerunCommand() *cobra.Command {
	var flags runFlags
	var again rerunFlags
	cmd := &cobra.Command{
		Use:   "rerun ID",
		Short: "Run once more what aod run or a server has run",
		Long: `Start a new run with the input and the files of one that has ended, and follow it to
its end as aod run does: stdout is the result, and the exit code is the run's. The unit is
run as it is now. Without --server the last runs of aod run on this machine are known, too.
A flow on a server can begin at a step of the old run, whose steps before that are taken over.`,
		Example: "  aod rerun 0198c0de-…\n  aod rerun 0198c0de-… --detach\n  aod rerun 0198c0de-… --from failed\n" +
			"  aod rerun 0198c0de-… --from review#2 --set mark=9",
		Args: exactly(1, "the id of a run"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.rerun(cmd.Context(), args[0], flags, again) },
	}
	cmd.Flags().StringVarP(&flags.out, "out", "o", "", "directory for output files (default aod-output/RUN-ID)")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print the whole run record instead of the result")
	cmd.Flags().BoolVar(&flags.detach, "detach", false, "on a server: print the new run's id and don't wait for it")
	cmd.Flags().StringVar(&again.from, "from", "",
		"of a flow: the address of a step, as aod flow steps lists them, or failed")
	cmd.Flags().StringArrayVarP(&again.set, "set", "s", nil,
		"with --from: what the state has before that step, `key=value`, JSON or a text; may be repeated")
	flags.history.register(cmd.Flags())
	return cmd
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
		key, text, err := split("--set", assignment, "key=value")
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

func (a *app) rerun(ctx context.Context, id string, flags runFlags, again rerunFlags) error {
	from, err := again.rerun()
	if err != nil {
		return err
	}
	past, server, err := a.past(id)
	if err != nil {
		return err
	}
	if server == nil && from.From != "" {
		return fault.New(fault.Input, "%s was run here, and only a server keeps the steps of flows", id).
			WithHint("run it again without --from")
	}
	if server == nil {
		return a.rerunHere(ctx, past, flags)
	}
	return a.start(ctx, server, flags, func(ctx context.Context) (api.Record, error) {
		return server.Rerun(ctx, id, from)
	})
}
