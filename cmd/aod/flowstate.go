package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/fault"
	"github.com/spf13/cobra"
)

func (a *app) flowStateCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "state RUN",
		Short: "Print what the nodes of a flow's run on a server have set so far",
		Long: `Print the state of a flow's run, also of one that goes on or has failed. With --out its files
are put there.`,
		Example: "  aod flow state 0198c0de-…\n  aod flow state 0198c0de-… --out state",
		Args:    exactly(1, "the id of a run"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.flowState(cmd.Context(), args[0], out) },
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "directory for the files of the state")
	return cmd
}

func (a *app) flowState(ctx context.Context, id, out string) error {
	server, err := a.connectFor(id)
	if err != nil {
		return err
	}
	state, err := server.FlowState(ctx, id)
	if err != nil {
		return err
	}
	if err := a.stdout.json(state.State); err != nil || out == "" {
		return err
	}
	for _, f := range state.Files {
		if err := saveStateFile(ctx, server, id, f, out); err != nil {
			return err
		}
		a.note("%s %s", printable(filepath.Join(out, f.Name)), bytesText(f.SizeBytes))
	}
	return nil
}

func saveStateFile(ctx context.Context, server *client.Client, id string, f api.File, dir string) (err error) {
	if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
		return fault.New(fault.Internal, "the server names a file that can't be saved: %q", f.Name)
	}
	path := filepath.Join(dir, filepath.FromSlash(f.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fault.Wrap(fault.Input, err, "--out %q can't be written to", dir)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fault.Wrap(fault.Input, err, "%q can't be made", path).WithHint("name an empty directory with --out")
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return server.FlowStateFile(ctx, id, f, file)
}
