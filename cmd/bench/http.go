package main

import (
	"context"
	"net/http"
	"path/filepath"
)

// overHTTP is the small job asked of a server that is there already.
func (b *bench) overHTTP(ctx context.Context) (row, error) {
	job, err := b.small(ctx)
	if err != nil {
		return row{}, err
	}
	s, err := b.serve(ctx, filepath.Join(b.dir, "http-data"))
	if err != nil {
		return row{}, err
	}
	return row{
		name:      "the small job: `POST /v1/runs?wait=30s`, `docker run`",
		ours:      s.submission(smallRun, "?wait=30s", http.StatusOK),
		yardstick: way{do: job.dockerRun},
		target:    "≤ 1.0",
		close:     s.stop,
	}, nil
}

// submission is the way of one submission, whose run has come to rest before anything
// else is timed.
func (s *server) submission(body, query string, want int) way {
	var last string
	return way{
		do: func(ctx context.Context) error {
			record, err := s.submit(ctx, body, query, want)
			last = record.ID
			return err
		},
		settle: func(ctx context.Context) error {
			_, err := s.rest(ctx, last)
			return err
		},
	}
}
