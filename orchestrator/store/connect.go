package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"modernc.org/sqlite" // also the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// busyTime is the longest wait for another process's write.
const busyTime = 10 * time.Second

// The pragmas of every connection. A connection waits for a writer of another process; a
// commit is on the disk when it returns; the write-ahead log shrinks again to 64 MiB. What is deleted
// is overwritten where its page is written in any case.
var pragmas = []string{
	fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()),
	"synchronous(FULL)",
	"foreign_keys(ON)",
	"journal_size_limit(67108864)",
	"secure_delete(FAST)",
}

// makeFile makes the file unless it exists. An existing file isn't opened: closing it would
// release the locks that this process may hold on it by another Store.
func makeFile(path string) error {
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return errors.Join(safefs.Sync(dir), safefs.Sync(filepath.Dir(dir)))
}

// prepare returns the writer's database. Without an error it is checked, and has the
// schema of this version.
func prepare(path string, logger *slog.Logger) (*sql.DB, error) {
	how := inspectionOf(path, logger)
	db, err := connect(path, 1, "rw")
	if err != nil {
		return nil, err
	}
	return db, patiently(func() error { return bringUp(context.Background(), db, how) })
}

// patiently retries an operation until no other process is in its way, or busyTime is over.
// While a process changes a database's journal mode, or closes it as the last one, SQLite
// refuses others at once, in spite of busy_timeout.
func patiently(do func() error) error {
	const pause = 10 * time.Millisecond
	for end := time.Now().Add(busyTime); ; time.Sleep(pause) {
		err := do()
		var foreign *sqlite.Error
		if !errors.As(err, &foreign) || foreign.Code()&0xff != sqlite3.SQLITE_BUSY || time.Now().After(end) {
			return err
		}
	}
}

// bringUp checks the file before it changes anything: the file may not be ours.
func bringUp(ctx context.Context, db *sql.DB, how inspection) error {
	version, err := versionOf(ctx, db)
	if err != nil {
		return err
	}
	if version == 0 { // before its first page is written
		if _, err := db.ExecContext(ctx, giving); err != nil {
			return err
		}
	}
	if err := how.of(ctx, db); err != nil {
		return err
	}
	if err := useWAL(ctx, db); err != nil {
		return err
	}
	return makeSchema(ctx, db, how.logger)
}

// useWAL lets readers and the writer work side by side. The file keeps this mode.
func useWAL(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fault.New(fault.Unsupported, "the database can't have a write-ahead log where it is").
			WithHint("put the data directory on a local file system")
	}
	return nil
}

func openReaders(path, mode string) (*sql.DB, error) {
	return connect(path, max(4, runtime.NumCPU()), mode, "query_only(ON)")
}

// connect returns a pool of at most n connections, which stay open. With the mode "ro" they
// leave the file as it is, also when the last of them closes.
func connect(path string, n int, mode string, more ...string) (*sql.DB, error) {
	query := url.Values{"mode": {mode}, "_txlock": {"immediate"}, "_pragma": append(more, pragmas...)}
	file := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", file.String())
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}
