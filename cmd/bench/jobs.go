package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const largeBytes = 100 << 20

// smallJob is a small Python job: JSON in, JSON out.
func (b *bench) smallJob(ctx context.Context) (row, error) {
	job, err := b.small(ctx)
	if err != nil {
		return row{}, err
	}
	return row{
		name: "small Python job, JSON in and out: `aod run`, `docker run`",
		ours: way{do: func(ctx context.Context) error {
			return command(ctx, b.aod, "--data", job.data, "run", "--quiet", job.capsule, "--set", "n=3")
		}},
		yardstick: way{do: job.dockerRun},
	}, nil
}

func (b *bench) small(ctx context.Context) (job, error) {
	return b.newJob(ctx, program{name: "small", input: `{"n": 3}`, logic: `def execute(payload: dict) -> dict:
    return {"n": payload["n"] + 1}
`})
}

// largeFiles copies 100 MiB: in, through the capsule, and out.
func (b *bench) largeFiles(ctx context.Context) (row, error) {
	job, err := b.large(ctx)
	if err != nil {
		return row{}, err
	}
	data, out := filepath.Join(b.dir, "data.bin"), filepath.Join(b.dir, "out")
	if err := writeRandom(data, largeBytes); err != nil {
		return row{}, err
	}
	return row{
		name: "100 MiB in and 100 MiB out: `aod run`, `docker run` with `cp` in and `cp` out",
		ours: way{do: func(ctx context.Context) error {
			return command(ctx, b.aod, "--data", job.data, "run", "--quiet", job.capsule, "--file", "data="+data, "--out", out)
		}},
		yardstick: way{do: func(ctx context.Context) error {
			if err := command(ctx, "cp", data, filepath.Join(job.io, "input", "data.bin")); err != nil {
				return err
			}
			if err := job.dockerRun(ctx); err != nil {
				return err
			}
			return command(ctx, "cp", filepath.Join(job.io, "output", "copy.bin"), filepath.Join(b.dir, "copy.bin"))
		}},
	}, nil
}

// large is a job that copies its input to its output.
func (b *bench) large(ctx context.Context) (job, error) {
	return b.newJob(ctx, program{name: "large", input: `{"data": "data.bin"}`, logic: `import shutil

import aod


def execute(payload: dict) -> dict:
    shutil.copyfile(aod.input_path(payload["data"]), aod.output_path("copy.bin"))
    return {"copy": "copy.bin"}
`})
}

// program is what a capsule is made of.
type program struct {
	name  string
	input string // where docker runs it
	logic string // src/main.py
	calls string // the capsule that it may call; "" is none
}

// tools grants the call.
func (p program) tools() string {
	if p.calls == "" {
		return "[]\n"
	}
	return "- {name: call, capsule: " + p.calls + "}\n"
}

// job is one capsule, with an /io directory for docker run.
type job struct {
	capsule, data, io, image string
}

// units is the directory of the capsules that the rows make.
func (b *bench) units() string { return filepath.Join(b.dir, "units") }

func (b *bench) newJob(ctx context.Context, p program) (job, error) {
	j := job{
		capsule: filepath.Join(b.units(), p.name), data: filepath.Join(b.dir, "aod-data"), io: filepath.Join(b.dir, p.name+"-io"),
	}
	files := map[string]string{
		"Dockerfile": "FROM aod/base\nCOPY . /capsule\n",
		"agent.yaml": "name: bench-" + p.name + "\nlimits: {memory: 1GiB}\n",
		"tools.yaml": p.tools(),
		"run.py":     "import aod\n\naod.run()\n",
		"schema.json": `{"input": {"type": "object", "properties": {"n": {"type": "int"}, "call": {"type": "bool"}, "data": {"type": "string", "format": "file_path"}}},
 "output": {"type": "object", "properties": {"n": {"type": "int"}, "copy": {"type": "string", "format": "file_path"}}}}`,
		"src/main.py": p.logic,
	}
	for name, content := range files {
		if err := write(filepath.Join(j.capsule, name), content); err != nil {
			return j, err
		}
	}
	for _, open := range []string{"", "input", "output", "handoff", "handoff/outgoing"} {
		path := filepath.Join(j.io, open)
		if err := os.MkdirAll(path, 0o777); err != nil {
			return j, err
		}
		if err := os.Chmod(path, 0o777); err != nil {
			return j, err
		}
	}
	if err := write(filepath.Join(j.io, "input.json"), p.input); err != nil {
		return j, err
	}
	ref, err := exec.CommandContext(ctx, b.aod, "--data", j.data, "build", "--quiet", j.capsule).Output()
	if err != nil {
		return j, fmt.Errorf("build %s: %w", p.name, err)
	}
	j.image = strings.TrimSpace(string(ref))
	return j, nil
}

// dockerRun does the job as somebody without aod would.
func (j job) dockerRun(ctx context.Context) error {
	return command(ctx, "docker", "run", "--rm", "--network", "none", "-v", j.io+":/io", j.image)
}

func command(ctx context.Context, name string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, said.String())
	}
	return nil
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

func writeRandom(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	source := rand.NewChaCha8([32]byte{})
	if _, err := io.CopyN(file, source, size); err != nil {
		return err
	}
	return file.Close()
}
