package main

import (
	"context"
	"net/http"
)

const (
	codeUnit = "aod.code"
	codeRun  = `{"unit": "aod.code", "input": {"code": "3 + 1"}}`
)

// programs is a program for the unit that comes with aod, beside the small job.
func (b *bench) programs(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	warm, err := b.stockOf(ctx, serving{more: "code: true\n"}, 2, "", smallUnit, codeUnit)
	if err != nil {
		return part{}, err
	}
	first, err := warm.submit(ctx, codeRun, waiting, http.StatusOK)
	if err != nil {
		return part{}, err
	}
	if _, err := warm.rest(ctx, first.ID); err != nil {
		return part{}, err
	}
	if err := warm.teach(ctx, smallRun); err != nil {
		return part{}, err
	}
	const code = "`aod.code`, warm"
	g := group{
		ways:   []*way{warm.submission(apiWarm, smallRun), warm.submission(code, codeRun)},
		beside: []string{apiWarm}, times: 7, notes: []func() string{warm.String}, aims: []aim{{of: code, ms: 12}},
	}
	return g.measure(ctx, b.pairs)
}
