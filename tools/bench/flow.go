package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api"
)

const (
	tenRuns   = "ten runs by the API, warm, one after the other"
	tenNodes  = "a flow of ten nodes, warm"
	tenCalls  = "a capsule that makes the ten calls, warm"
	deciding  = "a flow of 1,000 nodes that decide"
	chainUnit = "bench-chain"
	loopUnit  = "bench-loop"
)

// tenInARow is the small job ten times: by a client, as the nodes of a flow, and called by a
// capsule.
func (b *bench) tenInARow(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	if _, err := b.newJob(ctx,
		program{name: "caller", input: `{"n": 3}`, calls: smallUnit, logic: callingTenTimes}); err != nil {
		return part{}, err
	}
	if err := b.flow(chainUnit, chainOf(10)); err != nil {
		return part{}, err
	}
	k, err := b.stock(ctx, 12, smallRun, smallUnit)
	if err != nil {
		return part{}, err
	}
	ask := func(body string) func(context.Context) error {
		return func(ctx context.Context) error {
			record, err := k.submit(ctx, body, waiting, http.StatusOK)
			return wellEnded(record, err)
		}
	}
	settle := func(ctx context.Context) error { return k.full(ctx) }
	g := group{
		ways: []*way{
			{name: tenRuns, do: func(ctx context.Context) error {
				for range 10 {
					if err := ask(smallRun)(ctx); err != nil {
						return err
					}
				}
				return nil
			}, settle: settle},
			{name: tenNodes, do: ask(`{"unit": "` + chainUnit + `", "input": {"n": 3}}`), settle: settle},
			{name: tenCalls, do: ask(`{"unit": "bench-caller", "input": {"n": 3}}`), settle: settle},
		},
		beside: []string{tenRuns, tenCalls}, aims: []aim{{of: tenNodes, beside: tenRuns, ratio: 1.10}},
	}
	return g.measure(ctx, b.pairs)
}

// decides is a flow that runs nothing: what storing a step costs.
func (b *bench) decides(ctx context.Context) (part, error) {
	const loop = `max_steps: 1000
nodes:
  again:
    set: {n: "${{ (state.n ?? 0) + 1 }}"}
    action: '${{ (state.n ?? 0) >= 999 ? "stop" : "go" }}'
    next: {go: again, stop: end}
start: again
output: {n: "${{ state.n }}"}
`
	if err := b.flow(loopUnit, loop); err != nil {
		return part{}, err
	}
	s, err := b.serve(ctx, serving{})
	if err != nil {
		return part{}, err
	}
	g := group{ways: []*way{{name: deciding, do: func(ctx context.Context) error {
		record, err := s.submit(ctx, `{"unit": "`+loopUnit+`", "input": {}}`, waiting, http.StatusOK)
		return wellEnded(record, err)
	}}}, aims: []aim{{of: deciding, ms: 1000}}}
	return g.measure(ctx, b.pairs)
}

func wellEnded(record api.Record, err error) error {
	if err == nil && record.Outcome != api.Success {
		err = fmt.Errorf("run %s ended %s: %+v", record.ID, record.Outcome, record.Error)
	}
	return err
}

// flow makes a unit of the kind flow.
func (b *bench) flow(name, graph string) error {
	for file, content := range map[string]string{
		"agent.yaml": "name: " + name + "\nkind: flow\n", "flow.yaml": graph,
		"schema.json": `{"input": {"type": "object", "properties": {"n": {"type": "int"}}}, "output": {"type": "object", "properties": {"n": {"type": "int"}}}}`,
	} {
		if err := write(filepath.Join(b.units(), name, file), content); err != nil {
			return err
		}
	}
	return nil
}

// chainOf is a flow of so many small jobs in a row.
func chainOf(nodes int) string {
	var text strings.Builder
	text.WriteString("start: n1\nnodes:\n")
	for n := 1; n <= nodes; n++ {
		next := fmt.Sprintf("n%d", n+1)
		if n == nodes {
			next = "end"
		}
		fmt.Fprintf(&text,
			"  n%d: {run: %s, with: {n: \"${{ state.n ?? 0 }}\"}, set: {n: \"${{ out.n }}\"}, next: %s}\n", n,
			smallUnit, next)
	}
	text.WriteString("output: {n: \"${{ state.n }}\"}\n")
	return text.String()
}

const callingTenTimes = `import aod


def execute(payload: dict) -> dict:
    n = payload["n"]
    for _ in range(10):
        n = aod.handoff("bench-small", n=n).output["n"]
    return {"n": n}
`
