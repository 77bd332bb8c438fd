package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
)

// errClosed is the error of calls on a closed Store.
var errClosed = fault.New(fault.Unavailable, "the store is closed").WithHint("try again when AOD is up again")

// Taken says that an idempotency key belongs to a run already. Nothing was stored.
type Taken struct {
	Run         string // the id of the run that was inserted with the key
	Fingerprint string // of the request that inserted it
}

func (t *Taken) Error() string { return "the idempotency key belongs to run " + t.Run }

// UnknownRun is the NotFound fault of a run that there isn't.
func UnknownRun(run string) error { return fault.New(fault.NotFound, "there is no run %.64s", run) }

// explain turns an error of SQLite into a fault and adds the operation to any other error.
// Faults and *Taken pass unchanged. It is the one place that knows SQLite's codes.
func (c *core) explain(ctx context.Context, operation string, err error) error {
	var known *fault.Error
	var taken *Taken
	var happened *Happened
	var foreign *sqlite.Error
	var found damage
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.As(err, &taken), errors.As(err, &happened):
		return err
	case errors.As(err, &foreign):
		return c.noted(ctx, foreign.Code()&0xff, fmt.Errorf("%s: %w", operation, err))
	case errors.As(err, &found):
		return c.noted(ctx, sqlite3.SQLITE_CORRUPT, fmt.Errorf("%s: %w", operation, err))
	case c.writer != nil && pause.Over(c.writer.quit):
		return errClosed
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return c.unopened(fmt.Errorf("%s: %w", operation, err))
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// noted is explainCode for errors that the database's health depends on, too.
func (c *core) noted(ctx context.Context, code int, err error) error {
	err = c.explainCode(ctx, code, err)
	c.health.note(code, err)
	return err
}

// explainCode judges by the primary code, which is the lowest byte of SQLite's.
func (c *core) explainCode(ctx context.Context, code int, err error) error {
	switch code {
	case sqlite3.SQLITE_INTERRUPT:
		return errors.Join(ctx.Err(), err)
	case sqlite3.SQLITE_FULL:
		return fault.Wrap(fault.Unavailable, err, "the disk of the database is full; nothing was stored").
			WithHint("make room on the disk of the data directory, then try again")
	case sqlite3.SQLITE_IOERR:
		return fault.Wrap(fault.Unavailable, err, "the database could not be read or written").
			WithHint("look after the disk of the data directory: it may be full or failing")
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fault.Wrap(fault.Unavailable, err, "the database is damaged").
			WithHint("stop AOD, then `aod restore FILE --force` puts a backup in its place; without one, move the "+
				"directory of %s away and start without the runs of before", c.name)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fault.Wrap(fault.Unavailable, err, "another process is using the database").
			WithHint("wait for it to end, then try again")
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return c.unopened(err)
	case sqlite3.SQLITE_TOOBIG:
		return fault.Wrap(fault.TooLarge, err, "a document is larger than the database takes")
	}
	return err
}

func (c *core) unopened(err error) error {
	return fault.Wrap(fault.Unavailable, err, "the database can't be opened or written").
		WithHint("see that the directory of %s exists and that AOD may write to it and to the file", c.name)
}
