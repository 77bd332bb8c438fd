package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

const (
	callRun  = `{"unit": "bench-asking", "input": {"n": 3, "call": true}}`
	callUnit = "bench-asking"
	warmCall = "the call alone, both waiting: measured in the caller"
	coldCall = "the call alone, cold: measured in the caller"
)

// handOver is a capsule that asks the small job for its result. With docker its user
// starts the two programs himself, and none of them calls.
func (b *bench) handOver(ctx context.Context) (part, error) {
	callee, err := b.small(ctx)
	if err != nil {
		return part{}, err
	}
	caller, err := b.newJob(ctx, program{name: "asking", input: `{"n": 3}`, calls: smallUnit, logic: askingLogic})
	if err != nil {
		return part{}, err
	}
	cold, err := b.serve(ctx, serving{})
	if err != nil {
		return part{}, err
	}
	warm, err := b.stock(ctx, 2, callRun, callUnit, smallUnit)
	if err != nil {
		return part{}, err
	}
	colds, warms := &trail{server: cold, work: apiCold}, &trail{server: warm.server, work: apiWarm}
	two, err := b.twoInTurn(ctx, caller, callee)
	if err != nil {
		return part{}, err
	}
	plain, none := two[0].name, two[1].name
	g := group{
		ways:   append([]*way{calling(warms, warmCall), calling(colds, coldCall)}, two...),
		beside: []string{plain, none},
		aims:   []aim{{of: warmCall, ms: 12}},
		notes:  []func() string{warm.String, warms.String, colds.String},
	}
	g.ways[0].settle = func(ctx context.Context) error {
		err := warms.follow(ctx)
		if err != nil {
			return err
		}
		last := len(warms.callers) - 1
		return errors.Join(warm.count(warms.callers[last]), warm.count(warms.callees[last]), warm.full(ctx))
	}
	return g.measure(ctx, b.pairs)
}

// calling is a way with the caller's own measure in it.
func calling(t *trail, name string) *way {
	w := t.way(callRun)
	w.inside = &inside{name: name, took: func() time.Duration {
		var output struct{ MS float64 }
		_ = json.Unmarshal(t.last.Output, &output) // it kept the contract
		return inMilliseconds(output.MS)
	}}
	return w
}

// twoInTurn are the ways of somebody who does two jobs without aod.
func (b *bench) twoInTurn(ctx context.Context, caller, callee job) ([]*way, error) {
	ways := dockerWays(func(network string) func(context.Context) error {
		return inTurn(caller.dockerRun(network), callee.dockerRun(network))
	})
	if hasRunc() {
		first, err := b.runcWay(ctx, caller)
		if err != nil {
			return nil, err
		}
		second, err := b.runcWay(ctx, callee)
		if err != nil {
			return nil, err
		}
		ways = append(ways, &way{name: runcRun, do: inTurn(first[0].do, second[0].do)})
	}
	for _, w := range ways {
		w.name = "two " + w.name
	}
	return ways, nil
}

const askingLogic = `import time

import aod


def execute(payload: dict) -> dict:
    if not payload.get("call"):
        return {"n": payload["n"]}
    began = time.perf_counter()
    n = aod.handoff("bench-small", n=payload["n"]).output["n"]
    return {"n": n, "ms": (time.perf_counter() - began) * 1000}
`
