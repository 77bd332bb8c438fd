package main

import (
	"context"
	"net/http"
)

const (
	apiWarm = "API, warm"
	apiCold = "API, cold"
	aodRun  = "`aod run`, cold"

	// smallRun asks for the small job.
	smallRun  = `{"unit": "bench-small", "input": {"n": 3}}`
	smallUnit = "bench-small"
	waiting   = "?wait=60s"
)

// smallJob is the smallest job that says something: JSON in, JSON out.
func (b *bench) smallJob(ctx context.Context) (part, error) {
	j, err := b.small(ctx)
	if err != nil {
		return part{}, err
	}
	cold, err := b.serve(ctx, serving{})
	if err != nil {
		return part{}, err
	}
	warm, err := b.stock(ctx, 2, smallRun, smallUnit)
	if err != nil {
		return part{}, err
	}
	besides, err := b.besides(ctx, j)
	if err != nil {
		return part{}, err
	}
	ours := []*way{
		warm.submission(apiWarm, smallRun),
		cold.submission(apiCold, waiting, http.StatusOK),
		{name: aodRun, do: func(ctx context.Context) error {
			return command(ctx, b.aod, "--data", j.data, "run", "--quiet", j.capsule, "--set", "n=3")
		}},
	}
	g := group{
		ways: append(ours, besides...), beside: besideDocker, times: 7, notes: []func() string{warm.String},
		aims: []aim{
			{of: apiWarm, ms: 10},
			{of: apiWarm, beside: dockerPlain, ratio: 0.05},
			{of: apiCold, beside: dockerNone, ratio: 0.6},
			{of: apiCold, beside: dockerPlain, ratio: 0.5},
			{of: aodRun, beside: dockerNone, ratio: 0.95},
		},
	}
	return g.measure(ctx, b.pairs)
}

func (b *bench) small(ctx context.Context) (job, error) {
	return b.newJob(ctx, program{name: "small", input: `{"n": 3}`, logic: `def execute(payload: dict) -> dict:
    return {"n": payload["n"] + 1}
`, bare: `import json
import os
import sys

os.chdir(sys.argv[1])
with open("input.json") as file:
    payload = json.load(file)
with open("output.json", "w") as file:
    json.dump({"n": payload["n"] + 1}, file)
`})
}
