package store

import (
	"context"
	"time"
)

// A row of disabled_units with the time 0 is of a unit that was switched on.

// DisableUnit stores that a unit is switched off. Of one that is so already the time stays.
func (s *Store) DisableUnit(ctx context.Context, name string, at time.Time) error {
	const off = "INSERT INTO disabled_units (unit, at) VALUES (?, ?) ON CONFLICT (unit) DO UPDATE SET at = " +
		"excluded.at WHERE at = 0"
	return s.switchUnit(ctx, "disable unit", off, name, nanos(at))
}

// EnableUnit stores that a unit is switched on, whatever it says itself.
func (s *Store) EnableUnit(ctx context.Context, name string) error {
	const on = "INSERT INTO disabled_units (unit, at) VALUES (?, 0) ON CONFLICT (unit) DO UPDATE SET at = 0"
	return s.switchUnit(ctx, "enable unit", on, name)
}

func (s *Store) switchUnit(ctx context.Context, operation, statement string, args ...any) error {
	return s.change(ctx, operation,
		func(ctx context.Context, tx *transaction) error { return tx.exec(ctx, statement, args...) })
}

// SwitchedUnits returns the units that were switched off (true) or on (false), by name.
func (s *Store) SwitchedUnits(ctx context.Context) (map[string]bool, error) {
	type switched struct {
		unit string
		off  bool
	}
	scan := func(row scanner, u *switched) error { return row.Scan(&u.unit, &u.off) }
	rows, err := list(ctx, s, "list switched units", scan, "SELECT unit, at <> 0 FROM disabled_units")
	units := make(map[string]bool, len(rows))
	for _, u := range rows {
		units[u.unit] = u.off
	}
	return units, err
}
