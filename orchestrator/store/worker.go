package store

import (
	"context"
	"encoding/json"
	"time"
)

// Worker is what is known of a machine that takes runs from the server.
type Worker struct {
	Name    string
	Drained bool            // it takes nothing new
	About   json.RawMessage // what it said of itself; nil: nothing yet
	SeenAt  time.Time       // when it was connected last; zero: never
}

// Workers keeps the machines that take runs from the server.
type Workers struct{ core *core }

// Save stores a worker, in the place of what was known of it.
func (s *Workers) Save(ctx context.Context, w Worker) error {
	return s.core.change(ctx, "save worker", func(ctx context.Context, tx *transaction) error {
		return tx.exec(ctx, "INSERT OR REPLACE INTO workers (name, drained, about, seen_at) VALUES (?, ?, ?, ?)",
			w.Name, w.Drained, []byte(w.About), nanos(w.SeenAt))
	})
}

// List lists the workers by their names.
func (s *Workers) List(ctx context.Context) ([]Worker, error) {
	scan := func(row scanner, w *Worker) error {
		var seen int64
		err := row.Scan(&w.Name, &w.Drained, (*[]byte)(&w.About), &seen)
		w.SeenAt = fromNanos(seen)
		return err
	}
	return list(ctx, s.core, "list workers", scan, "SELECT name, drained, about, seen_at FROM workers ORDER BY name")
}

// Remove forgets a worker. Of one that isn't there it does nothing.
func (s *Workers) Remove(ctx context.Context, name string) error {
	return s.core.change(ctx, "remove worker", func(ctx context.Context, tx *transaction) error {
		return tx.exec(ctx, "DELETE FROM workers WHERE name = ?", name)
	})
}
