package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"sync"

	sqlite3 "modernc.org/sqlite/lib"
)

// core is what all nouns of a Store share: the connections of its readers, the one writer, and how the
// database fares.
type core struct {
	name    string // of the file, for hints
	logger  *slog.Logger
	readers *sql.DB
	writer  *writer // nil: nothing may be written
	seal    seal
	health  health
	close   func() error
}

func (c *core) open(path string, opts Options) error {
	if opts.NotEmpty && isEmpty(path) {
		return c.openDamaged(path, damage("the file is empty"))
	}
	if err := makeFile(path); err != nil {
		return err
	}
	db, err := prepare(path, c.logger)
	if isDamage(err) {
		return errors.Join(c.openDamaged(path, err), db.Close())
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	if c.readers, err = openReaders(path, "rw"); err != nil {
		return errors.Join(err, db.Close())
	}
	if c.seal, err = readSeal(context.Background(), c.readers); err != nil {
		return errors.Join(err, c.readers.Close(), db.Close())
	}
	c.writer = newWriter(db, opts)
	c.close = sync.OnceValue(func() error {
		c.writer.stop() // from here on, explain takes the readers' errors for a closed store
		err := errors.Join(c.readers.Close(), c.writer.close())
		c.writer.fed.Notify() // who waits for it finds that it is closed
		return err
	})
	return nil
}

// openDamaged opens for reading only. A reader is connected at once: a writer that is the last
// one to close would move the write-ahead log into the file.
func (c *core) openDamaged(path string, found error) (err error) {
	c.logger.Error("database damaged, nothing is written to it", "error", found)
	_ = c.explain(context.Background(), "open store", found) // notes it
	if c.readers, err = openReaders(path, "ro"); err != nil {
		return err
	}
	c.close = sync.OnceValue(c.readers.Close)
	ctx := context.Background()
	_ = c.readers.PingContext(ctx) // what can't be read at all, each call says
	if c.seal, err = readSeal(ctx, c.readers); err != nil {
		c.seal, err = passingSeal()
	}
	return err
}

func isEmpty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// write has the one writer do a change, where there is one.
func (c *core) write(ctx context.Context, change change) error {
	if c.writer == nil {
		_, trouble := c.health.last()
		return trouble
	}
	return c.writer.do(ctx, change)
}

// change is write with the error explained.
func (c *core) change(ctx context.Context, operation string, change change) error {
	change, stored := noted(ctx, change)
	err := c.write(ctx, change)
	if err == nil {
		stored()
	}
	return c.explain(ctx, operation, err)
}

// changeRun is change for something of a run, by its seq. An unknown run is a NotFound fault.
func (c *core) changeRun(
	ctx context.Context, operation, run string, change func(ctx context.Context, tx *transaction, seq int64) error,
) error {
	return c.change(ctx, operation, func(ctx context.Context, tx *transaction) error {
		seq, err := seqOf(ctx, tx, run)
		if err != nil {
			return err
		}
		return change(ctx, tx, seq)
	})
}

// probe writes a page, and reads the whole database if its disk had an error.
func (c *core) probe(ctx context.Context, code int) error {
	err := c.write(ctx, func(ctx context.Context, tx *transaction) error {
		return tx.exec(ctx, "UPDATE totals SET runs = runs")
	})
	if err == nil && code == sqlite3.SQLITE_IOERR {
		err = quickly(c.logger).of(ctx, c.readers)
	}
	return c.explain(ctx, "probe", err)
}
