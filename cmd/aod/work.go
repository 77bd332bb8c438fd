package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/worker"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
)

// machine is this one, as it works for a server.
type machine struct {
	*app
	join   string   // a file to join with; "": it has joined
	labels []string // that units may need
}

func workCommand(a *app) *cobra.Command {
	asked := machine{app: a}
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Take runs from a server, and carry them out on this machine",
		Long: `Take runs from a server, and carry them out on this machine's engine, until SIGTERM or Ctrl-C. The
machine needs Docker and a way to the server, and no address of its own. It joins once, with the
file that aod worker add has printed at the server; its data directory remembers that.

Runs outlive this command: their containers go on when it ends, however it does, and started again
it goes on with them. While the server is away they go on, too, and their results wait for it. To
end it without a trace: aod worker drain NAME at the server, wait, and aod worker rm NAME. On a
node of a Swarm that is drained it ends when its runs have; a second signal doesn't wait for that.

Of the settings (--config) those of containers, images, disk and log count; concurrency is how many
runs it takes at once, memory what they may take together.`,
		Example: "  aod work --join big.join\n  aod work\n  aod work --label gpu --label zone=b",
		Args:    cli.Exactly(0, "nothing but flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cli.LoadConfig(cmd)
			if err != nil {
				return err
			}
			return asked.work(cmd.Context(), c)
		},
	}
	cmd.Flags().StringVar(&asked.join, "join", "", "the file that aod worker add has printed: join that server first")
	cmd.Flags().StringSliceVar(&asked.labels, "label", nil,
		"what units may need of this machine: gpu, zone=b; several with commas; may be repeated")
	cli.AddSettings(cmd)
	return cmd
}

// work takes runs until ctx ends.
func (m machine) work(ctx context.Context, c *config.Config) error {
	if err := leadsRuns(goruntime.GOOS); err != nil {
		return err
	}
	logger, home := cli.NewLogger(m.env.Err, c.LogFormat, c.LogLevel), filepath.Join(c.Data, "worker")
	boundMemory(logger)
	return m.takeRuns(ctx, c, home, logger)
}

// takeRuns does so with an engine, for the server that a home has joined, or joins first.
func (m machine) takeRuns(ctx context.Context, c *config.Config, home string, logger *slog.Logger) (err error) {
	engine, err := m.engine(docker.Options{Unconfined: c.AllowUnconfined})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	images, opts := worker.NewImages(engine), containerOptions(c, secrets.Files{}, logger)
	opts.Images = images
	containers := container.New(engine, opts)
	if err := containers.Confined(ctx); fault.Is(err, fault.Unsupported) { // one that doesn't answer is waited for
		return err
	}
	info, err := probe(ctx, engine)
	if err != nil {
		return err
	}
	labels, err := labelsOf(info, m.labels)
	if err != nil {
		return err
	}
	if m.join != "" {
		if err := m.joinServer(ctx, home, info.Node, logger); err != nil {
			return err
		}
	}
	w, err := worker.New(worker.Options{
		Home: home, Kind: containers, Version: versionText(), Slots: c.Concurrency, MemoryBytes: c.Memory,
		Labels: labels, Node: info.Node, MinFreeDisk: c.MinFreeDisk, Images: images, Logger: logger,
		Door: egress.New(egress.Options{Private: c.EgressExceptions()}),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return w.Run(ctx)
}

// joinServer has this machine join the server of the file that `aod worker add` has printed, or `aod worker bundle`
// has made.
func (m machine) joinServer(ctx context.Context, home, node string, logger *slog.Logger) error {
	join, err := readJoin(m.join)
	if err != nil {
		return err
	}
	invited := worker.Invitation{WorkerJoin: join, Node: node}
	if invited.CA = m.env.CA; invited.CA != "" {
		if invited.CA, err = filepath.Abs(invited.CA); err != nil {
			return err
		}
	}
	if err := worker.Join(ctx, home, invited, logger); err != nil {
		return err
	}
	joined, err := worker.ReadMembership(home)
	if err == nil {
		m.env.Note("joined %s as %s", joined.Server, joined.Name)
	}
	return err
}

// probe asks the engine about itself.
func probe(ctx context.Context, engine serverEngine) (runtime.EngineInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return engine.Probe(ctx)
}

// labelsOf are those that are given, and what the engine is.
func labelsOf(info runtime.EngineInfo, given []string) ([]string, error) {
	all := append(slices.Clone(given), "os="+info.OS, "arch="+info.Arch)
	for _, label := range all {
		if err := api.CheckLabel(label); err != nil {
			return nil, err
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
