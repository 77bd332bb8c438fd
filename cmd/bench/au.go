package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const stdinBytes = 1 << 20

// auUnit counts the bytes of its stdin.
const auUnit = `#!/bin/sh
if [ "$1" = --describe ]; then
	echo '{"name": "count", "version": "1.0.0", "description": "counts bytes", "capabilities": ["count"], "inputs": [{"media_type": "*/*", "description": "any"}], "outputs": [{"media_type": "application/json", "description": "how many"}]}'
	exit
fi
echo "{\"bytes\": $(wc -c)}"
`

// agenticUnit runs a program on 1 MiB of stdin.
func (b *bench) agenticUnit(ctx context.Context) (row, error) {
	dir, data := filepath.Join(b.dir, "count"), filepath.Join(b.dir, "aod-data")
	for name, content := range map[string]string{
		"Dockerfile": "FROM debian:trixie-slim\nCOPY count /count\nENTRYPOINT [\"sh\", \"/count\"]\n",
		"agent.yaml": "name: bench-count\nkind: au\n",
		"count":      auUnit,
	} {
		if err := write(filepath.Join(dir, name), content); err != nil {
			return row{}, err
		}
	}
	stdin := filepath.Join(b.dir, "stdin")
	if err := writeRandom(stdin, stdinBytes); err != nil {
		return row{}, err
	}
	ref, err := exec.CommandContext(ctx, b.aod, "--data", data, "build", "--quiet", dir).Output()
	if err != nil {
		return row{}, fmt.Errorf("build the unit: %w", err)
	}
	image := strings.TrimSpace(string(ref))
	if err := command(ctx, b.aod, "--data", data, "au", "describe", dir); err != nil { // once for each image
		return row{}, err
	}
	return row{
		name: "1 MiB through an Agentic Unit: `aod au run`, `docker run -i`",
		ours: way{do: func(ctx context.Context) error {
			return fed(ctx, stdin, b.aod, "--data", data, "au", "run", "--quiet", dir)
		}},
		yardstick: way{do: func(ctx context.Context) error {
			return fed(ctx, stdin, "docker", "run", "-i", "--rm", "--network", "none", image)
		}},
		target: "≤ 1.05",
	}, nil
}

// fed runs a command with a file as its stdin.
func fed(ctx context.Context, stdin, name string, args ...string) error {
	file, err := os.Open(stdin)
	if err != nil {
		return err
	}
	defer file.Close()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = file
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, said.String())
	}
	return nil
}
