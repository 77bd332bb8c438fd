package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api"
)

const (
	projectFiles = 10_000
	projectBytes = 10_000 // of each file
	// projectEdit changes 100 of the files.
	projectEdit = "for i in $(seq 0 99); do echo changed >> dir-$i/file-50; done"
)

// workOnProject copies a project in, has 100 of its files changed, compares, and has the changes
// as a patch.
func (b *bench) workOnProject(ctx context.Context) (part, error) {
	dir, project := filepath.Join(b.units(), "editor"), filepath.Join(b.dir, "project")
	if err := write(filepath.Join(dir, "Dockerfile"), "FROM debian:trixie-slim\n"); err != nil {
		return part{}, err
	}
	yaml := "name: bench-editor\nkind: agent\naccess: read-write\nagent: {command: [sh, -ec, " +
		fmt.Sprintf("%q", projectEdit) + "], dir: /workspace/project}\n"
	if err := write(filepath.Join(dir, "agent.yaml"), yaml); err != nil {
		return part{}, err
	}
	if err := writeProject(project); err != nil {
		return part{}, err
	}
	data := filepath.Join(b.dir, "aod-data")
	image, err := b.build(ctx, data, dir)
	if err != nil {
		return part{}, err
	}
	const ours, theirs = "`aod agent run --workspace`, then `aod diff --patch`",
		"`docker cp` in and out, `git diff --no-index`"
	g := group{beside: []string{theirs}, each: 3, ways: []*way{
		{name: ours, do: func(ctx context.Context) error { return b.agentEdits(ctx, data, dir, project) }},
		{name: theirs, do: func(ctx context.Context) error { return b.dockerEdits(ctx, image, project) }},
	}, aims: []aim{{of: ours, beside: theirs, ratio: 0.8}}}
	return g.measure(ctx, b.pairs)
}

// writeProject makes files in 100 directories.
func writeProject(dir string) error {
	content := strings.Repeat("a line of a file of a project\n", projectBytes/30)
	for i := range projectFiles {
		if err := write(filepath.Join(dir, fmt.Sprintf("dir-%d", i%100), fmt.Sprintf("file-%d", i/100)),
			fmt.Sprintf("%d\n%s", i, content)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) agentEdits(ctx context.Context, data, dir, project string) error {
	raw, err := exec.CommandContext(ctx, b.aod, "--data", data, "agent", "run", "--quiet", dir, "-m", "go",
		"--workspace", project, "--json").Output()
	if err != nil {
		return fmt.Errorf("aod agent run: %w", err)
	}
	var record api.Record
	if err := json.Unmarshal(raw, &record); err != nil {
		return err
	}
	patch, err := exec.CommandContext(ctx, b.aod, "--data", data, "diff", record.ID, "--patch").Output()
	return errors.Join(err, hasChanges(patch))
}

// dockerEdits does the same without AOD.
func (b *bench) dockerEdits(ctx context.Context, image, project string) error {
	raw, err := exec.CommandContext(ctx, "docker", "create", "--label", benchLabel, "--network", "none", "-w",
		"/project", image, "sh", "-ec", projectEdit).Output()
	if err != nil {
		return fmt.Errorf("docker create: %w", err)
	}
	id, out := string(bytes.TrimSpace(raw)), filepath.Join(b.dir, "edited")
	err = inTurn(
		func(ctx context.Context) error { return command(ctx, "docker", "cp", project+"/.", id+":/project") },
		func(ctx context.Context) error { return command(ctx, "docker", "start", "-a", id) },
		func(ctx context.Context) error { return command(ctx, "docker", "cp", id+":/project", out) },
	)(ctx)
	if err == nil {
		// 1: they differ
		patch, _ := exec.CommandContext(ctx, "git", "diff", "--no-index", "--binary", project, out).Output()
		err = hasChanges(patch)
	}
	return errors.Join(err, command(ctx, "docker", "rm", "-f", id), os.RemoveAll(out))
}

func hasChanges(patch []byte) error {
	if n := bytes.Count(patch, []byte("diff --git ")); n != 100 {
		return fmt.Errorf("the patch has %d files", n)
	}
	return nil
}
