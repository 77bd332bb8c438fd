package store

import (
	"context"
	"database/sql"
	_ "embed" // of the schema
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
)

// schema makes an empty database one of schemaVersion. There are databases of that version: whoever
// changes the schema gives it the next version, and sees that those are brought to it.
//
//go:embed schema.sql
var schema string

const schemaVersion = 10

// applicationID marks a file as ours: "AOD1".
const applicationID = 0x414f4431

// makeSchema gives an empty database its schema, and leaves another one unchanged.
func makeSchema(ctx context.Context, db *sql.DB, logger *slog.Logger) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit there is nothing to roll back
	version, err := versionOf(ctx, tx)
	if err != nil || version == schemaVersion {
		return err
	}
	mark := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion)
	for _, text := range []string{schema, mark} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("make schema: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	logger.Info("database made", "version", schemaVersion)
	return nil
}

// rower is a database or a transaction.
type rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// versionOf returns the version of the database: schemaVersion, or 0 for an empty one. A database of
// another program, or of another version, is refused with a fault.
func versionOf(ctx context.Context, db rower) (int, error) {
	const question = `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version
		FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema), (SELECT file FROM pragma_database_list WHERE name = 'main')`
	var id, version, objects int
	var file string
	if err := db.QueryRowContext(ctx, question).Scan(&id, &version, &objects, &file); err != nil {
		return 0, err
	}
	switch {
	case id == 0 && version == 0 && objects == 0:
		return 0, nil
	case id != applicationID || version < 1:
		return 0, fault.New(fault.Conflict, "the file is a database of something else").
			WithHint("name a file of AOD's own, or one that does not exist yet")
	case version < schemaVersion:
		return 0, fault.New(fault.Unsupported, "%s is a database of version %d, and this AOD needs version %d",
			filepath.Base(file), version, schemaVersion).
			WithHint("bring it to version %d with an earlier AOD, or use another data directory", schemaVersion)
	case version > schemaVersion:
		return 0, fault.New(fault.Unsupported, "the database is of a newer AOD (version %d; this one knows up to %d)",
			version, schemaVersion).
			WithHint("use the newer AOD, or another data directory")
	}
	return version, nil
}
