package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// handOver is a capsule that asks the small job for its result. With docker its user
// starts the two programs himself, and none of them calls.
func (b *bench) handOver(ctx context.Context) (row, error) {
	callee, err := b.small(ctx)
	if err != nil {
		return row{}, err
	}
	caller, err := b.newJob(ctx, program{name: "asking", input: `{"n": 3}`, calls: "bench-small", logic: `import aod


def execute(payload: dict) -> dict:
    if payload.get("call"):
        return aod.handoff("bench-small", n=payload["n"]).output
    return {"n": payload["n"]}
`})
	if err != nil {
		return row{}, err
	}
	r := row{
		name:      "a capsule calls a capsule: `POST /v1/runs?wait=1m`, two `docker run`s",
		yardstick: way{do: inTurn(caller.dockerRun, callee.dockerRun)},
	}
	return b.withCalls(ctx, r, `{"unit": "bench-asking", "input": {"n": 3, "call": true}}`)
}

// carryFiles makes 100 MiB, hands them to a capsule that copies them to its output, and
// has them back. The way there is a copy of aod's, and of cp's beside it; the way back is
// a link, so nothing stands beside that.
func (b *bench) carryFiles(ctx context.Context) (row, error) {
	callee, err := b.large(ctx)
	if err != nil {
		return row{}, err
	}
	caller, err := b.newJob(ctx, program{name: "carrying", input: `{}`, calls: "bench-large", logic: fmt.Sprintf(`import os

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
`, largeBytes>>20)})
	if err != nil {
		return row{}, err
	}
	made, given := filepath.Join(caller.io, "handoff", "outgoing", "data.bin"), filepath.Join(callee.io, "input", "data.bin")
	carry := func(ctx context.Context) error { return command(ctx, "cp", made, given) }
	r := row{
		name: "100 MiB to a capsule and back: `POST /v1/runs?wait=1m`, two `docker run`s with a `cp` between them",
		each: 5,
		yardstick: way{
			do:     inTurn(caller.dockerRun, carry, callee.dockerRun),
			settle: remove(made, given, filepath.Join(callee.io, "output", "copy.bin")),
		},
	}
	return b.withCalls(ctx, r, `{"unit": "bench-carrying", "input": {"call": true}}`)
}

// withCalls gives a row its first way: to ask a new server for a run that calls another.
func (b *bench) withCalls(ctx context.Context, r row, body string) (row, error) {
	s, err := b.serve(ctx, filepath.Join(b.dir, "calls-data"))
	if err != nil {
		return row{}, err
	}
	trail := &trail{server: s, work: r.name}
	r.ours = way{
		do: func(ctx context.Context) (err error) {
			trail.last, err = s.submit(ctx, body, "?wait=1m", http.StatusOK)
			return err
		},
		settle: trail.follow,
	}
	r.note, r.close = trail.String, s.stop
	return r, nil
}

func inTurn(steps ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, step := range steps {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// remove has every turn make its files anew, as every run does.
func remove(paths ...string) func(context.Context) error {
	return func(context.Context) error {
		for _, path := range paths {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
		return nil
	}
}
