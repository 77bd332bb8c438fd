package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A check is bounded: a server that was down shall not stay so because it is large.
const (
	quickTime    = 10 * time.Second
	thoroughTime = 30 * time.Second
)

// inspection is how a database is looked through for damage.
type inspection struct {
	pragma string
	most   time.Duration
	logger *slog.Logger
}

// quickly looks through all pages, and not for entries that an index lacks.
func quickly(logger *slog.Logger) inspection { return inspection{"quick_check(1)", quickTime, logger} }

// thoroughly also compares the indexes with their tables.
func thoroughly(logger *slog.Logger) inspection {
	return inspection{"integrity_check(1)", thoroughTime, logger}
}

// inspectionOf is how thoroughly a database is checked when it is opened. SQLite removes the
// write-ahead log when the last process closes the database: where there is one, the last
// process was killed, or another one has it open.
func inspectionOf(path string, logger *slog.Logger) inspection {
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return thoroughly(logger)
	}
	return quickly(logger)
}

// damage is what an inspection has found.
type damage string

func (d damage) Error() string { return "inspection: " + string(d) }

// of returns the damage that it finds in its time.
func (i inspection) of(ctx context.Context, db *sql.DB) error {
	bounded, cancel := context.WithTimeout(ctx, i.most)
	defer cancel()
	var found string
	err := db.QueryRowContext(bounded, "PRAGMA "+i.pragma).Scan(&found)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case bounded.Err() != nil:
		i.logger.Warn("database too large to be checked in time", "seconds", i.most.Seconds())
		return nil
	case err != nil:
		return err
	case found != "ok":
		return damage(found)
	}
	return nil
}

// isDamage reports whether an error says that the file is not, or no longer, a whole database.
func isDamage(err error) bool {
	var found damage
	var foreign *sqlite.Error
	if errors.As(err, &foreign) {
		return gravity(foreign.Code()&0xff) == gravity(sqlite3.SQLITE_CORRUPT)
	}
	return errors.As(err, &found)
}
