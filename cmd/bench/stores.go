package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/agent-on-demand/aod/orchestrator"
)

const (
	manyRuns = 100_000
	fewRuns  = 50 // one page, so that both servers have the same to send
)

// stores are the data directories of two servers, one of which remembers much.
type stores struct{ many, few string }

// submitAmongMany times the acceptance of a run.
func (b *bench) submitAmongMany(ctx context.Context) (row, error) {
	many, few, err := b.serveBoth(ctx)
	if err != nil {
		return row{}, err
	}
	return row{
		name:      "`POST /v1/runs` till the 202, 100,000 runs remembered, 50 remembered",
		ours:      many.submission(smallRun, "", http.StatusAccepted),
		yardstick: few.submission(smallRun, "", http.StatusAccepted),
		target:    "< 1.5",
		close:     func() error { return errors.Join(many.stop(), few.stop()) },
	}, nil
}

// listAmongMany times the newest page of the list.
func (b *bench) listAmongMany(ctx context.Context) (row, error) {
	many, few, err := b.serveBoth(ctx)
	if err != nil {
		return row{}, err
	}
	return row{
		name:      "`GET /v1/runs?limit=50`, 100,000 runs remembered, 50 remembered",
		ours:      many.list(),
		yardstick: few.list(),
		times:     10,
		target:    "< 1.5",
		close:     func() error { return errors.Join(many.stop(), few.stop()) },
	}, nil
}

// list is the way of one page, which has to be a full one.
func (s *server) list() way {
	var answer []byte
	return way{
		do: func(ctx context.Context) (err error) {
			answer, err = s.ask(ctx, http.MethodGet, "/v1/runs?limit=50", "", http.StatusOK)
			return err
		},
		settle: func(context.Context) error {
			var page orchestrator.Page
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
	if many, err = b.serve(ctx, b.stores.many); err != nil {
		return nil, nil, err
	}
	if few, err = b.serve(ctx, b.stores.few); err != nil {
		return nil, nil, errors.Join(err, many.stop())
	}
	return many, few, nil
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
func (b *bench) realRecord(ctx context.Context) (record orchestrator.Record, err error) {
	s, err := b.serve(ctx, filepath.Join(b.dir, "model-data"))
	if err != nil {
		return record, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	record, err = s.submit(ctx, smallRun, "", http.StatusAccepted)
	if err != nil {
		return record, err
	}
	return s.rest(ctx, record.ID)
}
