package store

import (
	"context"
	"time"
)

// Units keeps which units were switched off or on.
type Units struct{ core *core }

// A row of disabled_units with the time 0 is of a unit that was switched on.

// Disable stores that a unit is switched off. Of one that is so already the time stays.
func (s *Units) Disable(ctx context.Context, name string, at time.Time) error {
	const off = "INSERT INTO disabled_units (unit, at) VALUES (?, ?) ON CONFLICT (unit) DO UPDATE SET at = " +
		"excluded.at WHERE at = 0"
	return s.set(ctx, "disable unit", off, name, nanos(at))
}

// Enable stores that a unit is switched on, whatever it says itself.
func (s *Units) Enable(ctx context.Context, name string) error {
	const on = "INSERT INTO disabled_units (unit, at) VALUES (?, 0) ON CONFLICT (unit) DO UPDATE SET at = 0"
	return s.set(ctx, "enable unit", on, name)
}

func (s *Units) set(ctx context.Context, operation, statement string, args ...any) error {
	return s.core.change(ctx, operation,
		func(ctx context.Context, tx *transaction) error { return tx.exec(ctx, statement, args...) })
}

// Switched returns the units that were switched off (true) or on (false), by name.
func (s *Units) Switched(ctx context.Context) (map[string]bool, error) {
	type switched struct {
		unit string
		off  bool
	}
	scan := func(row scanner, u *switched) error { return row.Scan(&u.unit, &u.off) }
	rows, err := list(ctx, s.core, "list switched units", scan, "SELECT unit, at <> 0 FROM disabled_units")
	units := make(map[string]bool, len(rows))
	for _, u := range rows {
		units[u.unit] = u.off
	}
	return units, err
}
