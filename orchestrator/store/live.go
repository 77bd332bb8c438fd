package store

import (
	"context"
	"time"
)

// Live counts the unfinished runs of one unit in one state.
type Live struct {
	Unit, State string
	Runs        int64
	Oldest      time.Time // when the first of them was accepted
}

// Live counts the unfinished runs, by unit and state.
func (s *Store) Live(ctx context.Context) ([]Live, error) {
	return list(ctx, s, "count runs", scanLive, selectLive)
}

const selectLive = "SELECT unit, state, count(*), min(created_at) FROM runs WHERE finished = 0 GROUP BY unit, state " +
	"ORDER BY unit, state"

func scanLive(row scanner, l *Live) error {
	return row.Scan(&l.Unit, &l.State, &l.Runs, stamp{&l.Oldest})
}
