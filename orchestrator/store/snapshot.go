package store

import (
	"context"
	"errors"
	"path/filepath"
)

// Snapshot makes a new file with the database at path as it is at one moment. Any process may
// write to the database meanwhile. The new file is not synced. Errors are those of Open; a
// damaged database is an Unavailable fault.
func Snapshot(ctx context.Context, path, to string) error {
	c := &core{name: filepath.Base(path)}
	return c.explain(ctx, "copy database", vacuumInto(ctx, path, to))
}

func vacuumInto(ctx context.Context, path, to string) (err error) {
	db, err := connect(path, 1, "rw")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return patiently(func() error {
		if _, err := versionOf(ctx, db); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, "VACUUM INTO ?", to)
		return err
	})
}
