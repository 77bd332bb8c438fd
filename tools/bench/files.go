package main

import (
	"context"
	"fmt"
	"path/filepath"
)

const largeBytes = 100 << 20

// largeFiles copies 100 MiB: in, through the capsule, and out. Beside aod somebody else
// does the first and the last with cp.
func (b *bench) largeFiles(ctx context.Context) (part, error) {
	j, err := b.large(ctx)
	if err != nil {
		return part{}, err
	}
	data, out := filepath.Join(b.dir, "data.bin"), filepath.Join(b.dir, "out")
	if err := writeRandom(data, largeBytes); err != nil {
		return part{}, err
	}
	g := group{beside: besideDocker, each: 3, ways: []*way{{name: aodRun, do: func(ctx context.Context) error {
		return command(ctx, b.aod, "--data", j.data, "run", "--quiet", j.capsule, "--file", "data="+data, "--out", out)
	}}}}
	besides, err := b.besides(ctx, j)
	if err != nil {
		return part{}, err
	}
	for _, w := range besides {
		in, back := copying(data, filepath.Join(w.io, "input", "data.bin")), copying(filepath.Join(w.io, "output",
			"copy.bin"), filepath.Join(b.dir, "copy.bin"))
		w.do = inTurn(in, w.do, back)
	}
	g.ways = append(g.ways, besides...)
	return g.measure(ctx, b.pairs)
}

// large is a job that copies its input to its output.
func (b *bench) large(ctx context.Context) (job, error) {
	return b.newJob(ctx, program{name: "large", input: `{"data": "data.bin"}`, logic: `import shutil

import aod


def execute(payload: dict) -> dict:
    shutil.copyfile(aod.input_path(payload["data"]), aod.output_path("copy.bin"))
    return {"copy": "copy.bin"}
`, bare: `import os
import shutil
import sys

os.chdir(sys.argv[1])
shutil.copyfile("input/data.bin", "output/copy.bin")
`})
}

// carryFiles makes 100 MiB, hands them to a capsule that copies them to its output, and
// has them back. The way there is a copy of aod's, and of cp's beside it; the way back is
// a link, so nothing stands beside that.
func (b *bench) carryFiles(ctx context.Context) (part, error) {
	callee, err := b.large(ctx)
	if err != nil {
		return part{}, err
	}
	caller, err := b.newJob(ctx,
		program{name: "carrying", input: `{}`, calls: "bench-large", logic: fmt.Sprintf(carryingLogic, largeBytes>>20)})
	if err != nil {
		return part{}, err
	}
	cold, err := b.serve(ctx, serving{})
	if err != nil {
		return part{}, err
	}
	calls := &trail{server: cold, work: apiCold}
	made, given := filepath.Join(caller.io, "handoff", "outgoing", "data.bin"), filepath.Join(callee.io, "input",
		"data.bin")
	two := dockerWays(func(network string) func(context.Context) error {
		return inTurn(caller.dockerRun(network), copying(made, given), callee.dockerRun(network))
	})
	for _, w := range two {
		w.name = "two " + w.name + " and a `cp`"
		w.settle = remove(made, given, filepath.Join(callee.io, "output", "copy.bin"))
	}
	g := group{each: 5, beside: []string{two[0].name, two[1].name}, notes: []func() string{calls.String}}
	g.ways = append([]*way{calls.way(`{"unit": "bench-carrying", "input": {"call": true}}`)}, two...)
	return g.measure(ctx, b.pairs)
}

const carryingLogic = `import os

import aod

OUTGOING = "/io/handoff/outgoing/data.bin"


def execute(payload: dict) -> dict:
    block = os.urandom(1 << 20)
    with open(OUTGOING, "wb") as file:
        for _ in range(%d):
            file.write(block)
    if not payload.get("call"):
        return {}
    result = aod.handoff("bench-large", data="data.bin")
    if os.path.getsize(result.path("copy")) != os.path.getsize(OUTGOING):
        raise aod.CapsuleError("the copy is not whole")
    return {}
`
