package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
)

const (
	stdinBytes = 1 << 20
	countUnit  = "bench-count"
	auRun      = "`aod au run`, cold"
)

// auProgram counts the bytes of its stdin.
const auProgram = `#!/bin/sh
if [ "$1" = --describe ]; then
	echo '{"name": "count", "version": "1.0.0", "description": "counts bytes", "capabilities": ["count"], "inputs": [{"media_type": "*/*", "description": "any"}], "outputs": [{"media_type": "application/json", "description": "how many"}]}'
	exit
fi
echo "{\"bytes\": $(wc -c)}"
`

// countDir makes the unit, of which AOD asks the model card once.
func (b *bench) countDir(ctx context.Context) (dir, image string, err error) {
	dir = filepath.Join(b.units(), "count")
	for name, content := range map[string]string{
		"Dockerfile": "FROM debian:trixie-slim\nCOPY count /count\nENTRYPOINT [\"sh\", \"/count\"]\n",
		"agent.yaml": "name: " + countUnit + "\nkind: au\n",
		"count":      auProgram,
	} {
		if err := write(filepath.Join(dir, name), content); err != nil {
			return "", "", err
		}
	}
	image, err = b.build(ctx, filepath.Join(b.dir, "aod-data"), dir)
	return dir, image, err
}

// agenticUnit runs a program on 1 MiB of stdin.
func (b *bench) agenticUnit(ctx context.Context) (part, error) {
	dir, image, err := b.countDir(ctx)
	if err != nil {
		return part{}, err
	}
	stdin, data := filepath.Join(b.dir, "stdin"), filepath.Join(b.dir, "aod-data")
	if err := writeRandom(stdin, stdinBytes); err != nil {
		return part{}, err
	}
	body, err := os.ReadFile(stdin)
	if err != nil {
		return part{}, err
	}
	if err := command(ctx, b.aod, "--data", data, "au", "describe", dir); err != nil { // once for each image
		return part{}, err
	}
	cold, err := b.serve(ctx, serving{})
	if err != nil {
		return part{}, err
	}
	warm, err := b.stock(ctx, 2, "", countUnit)
	if err != nil {
		return part{}, err
	}
	g := group{beside: besideDocker, notes: []func() string{warm.String}, ways: []*way{
		warm.piped(apiWarm, string(body), warm.after),
		cold.piped(apiCold, string(body), cold.after),
		{name: auRun, do: func(ctx context.Context) error {
			return fed(ctx, stdin, b.aod, "--data", data, "au", "run", "--quiet", dir)
		}},
	}}
	besides, err := b.besideUnit(ctx, image, stdin, dir)
	if err != nil {
		return part{}, err
	}
	g.ways = append(g.ways, besides...)
	return g.measure(ctx, b.pairs)
}

func (b *bench) besideUnit(ctx context.Context, image, stdin, dir string) ([]*way, error) {
	ways := dockerWays(func(network string) func(context.Context) error {
		args := []string{"run", "-i", "--rm", "--label", benchLabel}
		if network != "" {
			args = append(args, "--network", network)
		}
		return func(ctx context.Context) error { return fed(ctx, stdin, "docker", append(args, image)...) }
	})
	if hasRunc() {
		box, err := b.newBundle(ctx, image, "")
		if err != nil {
			return nil, err
		}
		ways = append(ways, &way{name: runcRun, do: func(ctx context.Context) error { return box.run(ctx, stdin) }})
	}
	return append(ways, &way{name: "`sh` of the host", do: func(ctx context.Context) error {
		return fed(ctx, stdin, "sh", filepath.Join(dir, "count"))
	}}), nil
}

// piped is the way of a unit that is asked with its stdin as the body.
func (s *server) piped(name, body string, after func(context.Context, ...string) error) *way {
	return submission(name, after, func(ctx context.Context) (api.Record, error) {
		header, _, err := s.send(ctx, http.MethodPost, "/v1/au/"+countUnit, body, http.StatusOK)
		return api.Record{ID: header.Get("AOD-Run")}, err
	})
}
