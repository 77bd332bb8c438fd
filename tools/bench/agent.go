package main

import (
	"context"
	"net/http"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
)

const (
	wrappedUnit = "bench-wrapped"
	wrappedRun  = `{"unit": "bench-wrapped", "input": {"message": "count this"}}`
	countedText = "count this"
)

// wrappedDir makes a wrapped agent of the program that countDir makes an Agentic Unit of.
func (b *bench) wrappedDir(ctx context.Context) error {
	dir := filepath.Join(b.units(), "wrapped")
	for name, content := range map[string]string{
		"Dockerfile": "FROM debian:trixie-slim\nCOPY count /count\n",
		"agent.yaml": "name: " + wrappedUnit +
			"\nkind: agent\nagent: {command: [sh, /count]}\nlimits: {memory: 256MiB}\n",
		"count": auProgram,
	} {
		if err := write(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	_, err := b.build(ctx, filepath.Join(b.dir, "aod-data"), dir)
	return err
}

// wrappedAgent runs one program as an agent and as an Agentic Unit.
func (b *bench) wrappedAgent(ctx context.Context) (part, error) {
	dir, _, err := b.countDir(ctx)
	if err != nil {
		return part{}, err
	}
	if err := b.wrappedDir(ctx); err != nil {
		return part{}, err
	}
	// once for each image
	if err := command(ctx, b.aod, "--data", filepath.Join(b.dir, "aod-data"), "au", "describe", dir); err != nil {
		return part{}, err
	}
	cold, err := b.serve(ctx, serving{})
	if err != nil {
		return part{}, err
	}
	warm, err := b.stock(ctx, 2, "", countUnit, wrappedUnit)
	if err != nil {
		return part{}, err
	}
	const agentWarm, agentCold, auWarm, auCold = "an agent, warm", "an agent, cold", "an Agentic Unit, warm",
		"an Agentic Unit, cold"
	g := group{beside: []string{auWarm, auCold}, notes: []func() string{warm.String}, ways: []*way{
		warm.submission(agentWarm, wrappedRun),
		warm.piped(auWarm, countedText, warm.after),
		submission(agentCold, cold.after, func(ctx context.Context) (api.Record, error) {
			return cold.submit(ctx, wrappedRun, waiting, http.StatusOK)
		}),
		cold.piped(auCold, countedText, cold.after),
	}, aims: []aim{
		{of: agentWarm, beside: auWarm, ratio: 1.1},
		{of: agentCold, beside: auCold, ratio: 1.1},
	}}
	return g.measure(ctx, b.pairs)
}
