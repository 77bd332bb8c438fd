package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/agent-on-demand/aod/fault"
)

// migrations lead from each version to the next; the file's number is the version that
// it makes. A file that was released is never changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks a file as ours: "AOD1".
const applicationID = 0x414f4431

// migrate brings the database to the newest version, or leaves it unchanged.
func migrate(ctx context.Context, db *sql.DB, logger *slog.Logger) error {
	steps, err := migrationFiles()
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit there is nothing to roll back
	version, err := versionOf(ctx, tx)
	if err != nil {
		return err
	}
	if version == len(steps) {
		return nil
	}
	if err := apply(ctx, tx, steps, version); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	logger.Info("store migrated", "from", version, "to", len(steps))
	return nil
}

// apply executes the steps beyond a version.
func apply(ctx context.Context, tx *sql.Tx, steps []string, version int) error {
	for _, step := range steps[version:] {
		text, err := migrations.ReadFile(step)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	mark := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(steps))
	_, err := tx.ExecContext(ctx, mark)
	return err
}

// migrationFiles are sorted by name.
func migrationFiles() ([]string, error) { return fs.Glob(migrations, "migrations/*.sql") }

// rower is a database or a transaction.
type rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// versionOf returns the version of the database, 0 for an empty one. A database of another
// program, or of a newer AOD, is refused with a fault.
func versionOf(ctx context.Context, db rower) (int, error) {
	const question = `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema)`
	var id, version, objects int
	if err := db.QueryRowContext(ctx, question).Scan(&id, &version, &objects); err != nil {
		return 0, err
	}
	steps, err := migrationFiles()
	switch {
	case err != nil:
		return 0, err
	case id == 0 && version == 0 && objects == 0:
		return 0, nil
	case id != applicationID || version < 1:
		return 0, fault.New(fault.Conflict, "the file is a database of something else").
			WithHint("name a file of AOD's own, or one that does not exist yet")
	case version > len(steps):
		return 0, fault.New(fault.Unsupported, "the database is of a newer AOD (version %d; this one knows up to %d)", version, len(steps)).
			WithHint("use the newer AOD, or another data directory")
	}
	return version, nil
}
