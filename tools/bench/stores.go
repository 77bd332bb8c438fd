package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
)

const (
	manyRuns = 100_000
	fewRuns  = 50 // one page, so that both servers have the same to send
)

// stores are the data directories of two servers, one of which remembers much.
type stores struct{ many, few string }

// submitAmongMany times the acceptance of a run.
func (b *bench) submitAmongMany(ctx context.Context) (part, error) {
	many, few, err := b.serveBoth(ctx)
	if err != nil {
		return part{}, err
	}
	return b.besideFew(ctx, 1,
		many.submission("`POST /v1/runs` till the 202, 100,000 remembered", "", http.StatusAccepted),
		few.submission("50 remembered", "", http.StatusAccepted))
}

// listAmongMany times the newest page of the list.
func (b *bench) listAmongMany(ctx context.Context) (part, error) {
	many, few, err := b.serveBoth(ctx)
	if err != nil {
		return part{}, err
	}
	return b.besideFew(ctx, 10, many.list("a page of 50 of `GET /v1/runs`, 100,000 remembered"),
		few.list("50 remembered"))
}

// besideFew holds that a server slows down by less than half.
func (b *bench) besideFew(ctx context.Context, times int, many, few *way) (part, error) {
	g := group{
		ways: []*way{many, few}, beside: []string{few.name}, times: times,
		aims: []aim{{of: many.name, beside: few.name, ratio: 1.5}},
	}
	return g.measure(ctx, b.pairs)
}

// list is the way of one page, which has to be a full one.
func (s *server) list(name string) *way {
	var answer []byte
	return &way{
		name: name,
		do: func(ctx context.Context) (err error) {
			answer, err = s.ask(ctx, http.MethodGet, "/v1/runs?limit=50", "", http.StatusOK)
			return err
		},
		settle: func(context.Context) error {
			var page api.Page
			err := json.Unmarshal(answer, &page)
			if err == nil && len(page.Runs) != fewRuns {
				err = fmt.Errorf("the page has %d runs", len(page.Runs))
			}
			return err
		},
	}
}

func (b *bench) serveBoth(ctx context.Context) (many, few *server, err error) {
	if err := b.fillStores(ctx); err != nil {
		return nil, nil, err
	}
	if many, err = b.serve(ctx, serving{data: b.stores.many}); err != nil {
		return nil, nil, err
	}
	few, err = b.serve(ctx, serving{data: b.stores.few})
	return many, few, err
}

// fillStores makes the two data directories, once.
func (b *bench) fillStores(ctx context.Context) error {
	if b.stores != nil {
		return nil
	}
	if _, err := b.small(ctx); err != nil {
		return err
	}
	model, err := b.realRecord(ctx)
	if err != nil {
		return err
	}
	s := stores{many: filepath.Join(b.dir, "many-data"), few: filepath.Join(b.dir, "few-data")}
	if err := fill(ctx, s.many, manyRuns, model); err != nil {
		return fmt.Errorf("fill store: %w", err)
	}
	if err := fill(ctx, s.few, fewRuns, model); err != nil {
		return fmt.Errorf("fill store: %w", err)
	}
	b.stores = &s
	return nil
}

// realRecord is the record of a run that was made, which the invented ones resemble.
func (b *bench) realRecord(ctx context.Context) (record api.Record, err error) {
	s, err := b.serve(ctx, serving{})
	if err != nil {
		return record, err
	}
	record, err = s.submit(ctx, smallRun, "", http.StatusAccepted)
	if err != nil {
		return record, err
	}
	return s.rest(ctx, record.ID)
}
