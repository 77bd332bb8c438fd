package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/swarm"
	"github.com/agent-on-demand/aod/orchestrator/layout"
)

// swarmOf knows the nodes of the Swarm that a server's engine manages; nil: its setting wants none. The error is an
// Unsupported fault of an engine that is no manager; one that doesn't answer is waited for.
func swarmOf(
	ctx context.Context, c *config.Config, home string, engine serverEngine, logger *slog.Logger,
) (*swarm.Swarm, error) {
	if c.Swarm == "" {
		return nil, nil
	}
	nodes, err := swarm.New(swarm.Options{
		Nodes: engine.Nodes, File: filepath.Join(home, layout.Swarm), Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	if _, err := nodes.Look(ctx); fault.Is(err, fault.Unsupported) {
		return nil, err
	}
	return nodes, nil
}

// shareJoin has the nodes of the Swarm enrol with the token of the file that they share.
func shareJoin(c *config.Config, tokens *access.Tokens) error {
	if c.Swarm == "" {
		return nil
	}
	join, err := readJoin(c.Swarm)
	if err == nil {
		err = tokens.Share(join.Token)
	}
	if err != nil {
		return fault.Wrap(fault.Input, err, "the file %q of the setting swarm isn't that of all nodes", c.Swarm).
			WithHint("`aod worker bundle --url https://HOST:PORT DIR` makes it: DIR/join")
	}
	return nil
}

// readJoin reads a file to join a server with.
func readJoin(path string) (join api.WorkerJoin, err error) {
	text, err := cli.ReadSmall(path)
	if err == nil {
		err = json.Unmarshal([]byte(text), &join)
	}
	if err != nil || join.Server == "" || join.Token == "" {
		return join, fault.Wrap(fault.Input, err, "%q isn't a file to join with", path).
			WithHint("at the server: aod worker add NAME >NAME.join")
	}
	return join, nil
}
