package store

import (
	"context"
	"database/sql"
	_ "embed" // of the schema
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// schema makes an empty database one of schemaVersion. There are databases of oldestVersion, too, which next
// brings to it: whoever changes the schema gives it the next version, and a step that leads to that.
//
//go:embed schema.sql
var schema string

const schemaVersion, oldestVersion = 15, 10

// next brings a database of a version to the one after it. Tables that others refer to may be made anew. Never
// changed: there are databases that were made so.
var next = map[int]string{10: to11, 11: to12, 12: to13, 13: to14, 14: to15}

var (
	//go:embed to11.sql
	to11 string
	//go:embed to12.sql
	to12 string
	//go:embed to13.sql
	to13 string
	//go:embed to14.sql
	to14 string
	//go:embed to15.sql
	to15 string
)

// applicationID marks a file as ours: "AOD1".
const applicationID = 0x414f4431

// makeSchema gives an empty database its schema, brings one of an older version to that, and leaves another one
// unchanged. It is for the one connection of a writer.
func makeSchema(ctx context.Context, db *sql.DB, logger *slog.Logger) (err error) {
	began := time.Now()
	if _, err := db.ExecContext(ctx, "PRAGMA foreign_keys = OFF"); err != nil { // else none could be made anew
		return err
	}
	defer func() {
		_, again := db.ExecContext(ctx, "PRAGMA foreign_keys = ON")
		err = errors.Join(err, again)
	}()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit there is nothing to roll back
	version, err := versionOf(ctx, tx)
	if err != nil || version == schemaVersion {
		return err
	}
	if version > 0 {
		logger.Info("database is brought to a newer version, which may take a while",
			"from", version, "version", schemaVersion)
	}
	mark := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion)
	for _, text := range append(stepsFrom(version), mark) {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("make schema: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	logger.Info("database made", "version", schemaVersion, "ms", time.Since(began).Milliseconds())
	return nil
}

// stepsFrom are what makes a database of a version, 0 for an empty one, one of schemaVersion.
func stepsFrom(version int) (steps []string) {
	if version == 0 {
		return []string{schema}
	}
	for ; version < schemaVersion; version++ {
		steps = append(steps, next[version])
	}
	return steps
}

// rower is a database or a transaction.
type rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// versionOf returns the version of the database, or 0 for an empty one. A database of another program, or of a
// version that can't be brought to schemaVersion, is refused with a fault.
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
	case version < oldestVersion:
		return 0, fault.New(fault.Unsupported, "%s is a database of version %d, and this AOD needs version %d",
			filepath.Base(file), version, oldestVersion).
			WithHint("bring it to version %d with an earlier AOD, or use another data directory", oldestVersion)
	case version > schemaVersion:
		return 0, fault.New(fault.Unsupported, "the database is of a newer AOD (version %d; this one knows up to %d)",
			version, schemaVersion).
			WithHint("use the newer AOD, or another data directory")
	}
	return version, nil
}
