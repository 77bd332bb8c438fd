package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	dockerPlain = "`docker run`"
	dockerNone  = "`docker run --network none`"

	// benchLabel is on each container that isn't aod's.
	benchLabel = "aod.bench"
)

// besideDocker is what most tables are held against.
var besideDocker = []string{dockerPlain, dockerNone}

// program is what a capsule is made of.
type program struct {
	name  string
	input string // where docker runs it
	logic string // src/main.py
	bare  string // the same for python3 on the host, in a directory like /io; may be ""
	calls string // the capsule that it may call; "" is none
	agent string // more lines of agent.yaml

	schema string // schema.json; "" is the usual one
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
	program
	capsule, data, io, image string
}

// units is the directory of the capsules that the rows make.
func (b *bench) units() string { return filepath.Join(b.dir, "units") }

func (b *bench) newJob(ctx context.Context, p program) (job, error) {
	j := job{
		program: p, capsule: filepath.Join(b.units(), p.name), data: filepath.Join(b.dir, "aod-data"),
		io: filepath.Join(b.dir, p.name+"-io"),
	}
	files := map[string]string{
		"Dockerfile": "FROM aod/base\nCOPY . /capsule\n",
		"agent.yaml": "name: bench-" + p.name + "\nlimits: {memory: 1GiB, timeout: 10m}\n" + p.agent,
		"tools.yaml": p.tools(),
		"run.py":     "import aod\n\naod.run()\n",
		"schema.json": cmp.Or(p.schema, `{"input": {"type": "object", "properties": {"n": {"type": "int"}, "call": {"type": "bool"}, "data": {"type": "string", "format": "file_path"}}},
 "output": {"type": "object", "properties": {"n": {"type": "int"}, "ms": {"type": "float"}, "copy": {"type": "string", "format": "file_path"}}}}`),
		"src/main.py": p.logic,
	}
	for name, content := range files {
		if err := write(filepath.Join(j.capsule, name), content); err != nil {
			return j, err
		}
	}
	if err := openIO(j.io, p.input); err != nil {
		return j, err
	}
	var err error
	j.image, err = b.build(ctx, j.data, j.capsule)
	return j, err
}

// build returns the image of a directory.
func (b *bench) build(ctx context.Context, data, dir string) (string, error) {
	ref, err := exec.CommandContext(ctx, b.aod, "--data", data, "build", "--quiet", dir).Output()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", filepath.Base(dir), err)
	}
	return strings.TrimSpace(string(ref)), nil
}

// openIO makes a directory like /io, which any user may write to.
func openIO(dir, input string) error {
	for _, open := range []string{"", "input", "output", "handoff", "handoff/outgoing"} {
		path := filepath.Join(dir, open)
		if err := os.MkdirAll(path, 0o777); err != nil {
			return err
		}
		if err := os.Chmod(path, 0o777); err != nil {
			return err
		}
	}
	return write(filepath.Join(dir, "input.json"), input)
}

// dockerRun does the job as somebody without aod would; with "" on the default network.
func (j job) dockerRun(network string) func(context.Context) error {
	args := []string{"run", "--rm", "--label", benchLabel}
	if network != "" {
		args = append(args, "--network", network)
	}
	args = append(args, "-v", j.io+":/io", j.image)
	return func(ctx context.Context) error { return command(ctx, "docker", args...) }
}

// elsewhere is the job with another directory as its /io.
func (j job) elsewhere(io string) (job, error) {
	j.io = io
	return j, openIO(io, j.input)
}

// networks are those of the two that besideDocker names; "" is the default one.
var networks = []struct{ name, network string }{{dockerPlain, ""}, {dockerNone, "none"}}

func dockerWays(run func(network string) func(context.Context) error) (ways []*way) {
	for _, n := range networks {
		ways = append(ways, &way{name: n.name, do: run(n.network)})
	}
	return ways
}

// besides are docker run and the floor of one job.
func (b *bench) besides(ctx context.Context, j job) ([]*way, error) {
	runc, err := b.runcWay(ctx, j)
	if err != nil {
		return nil, err
	}
	docker := dockerWays(j.dockerRun)
	for _, w := range docker {
		w.io = j.io
	}
	bare, err := b.bareWay(ctx, j)
	return slices.Concat(docker, runc, bare), err
}
