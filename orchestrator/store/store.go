package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// Store is an open database. Its methods may be called by many goroutines at once.
type Store struct {
	name    string // of the file, for hints
	logger  *slog.Logger
	readers *sql.DB
	writer  *writer // nil: nothing may be written
	health  health
	close   func() error
}

// Options configure a Store. The zero Options are fine.
type Options struct {
	Logger   *slog.Logger // nil: nothing is logged
	NotEmpty bool         // the database has content: an empty file in its place is damage
}

// Open opens the database at path, and looks it through for damage as far as that goes in its
// time. A missing file is made with mode 0600, and its directory with mode 0700 if only that is
// missing. The error is a fault: Unsupported for a file of another version, Conflict for a database
// of something else, Unavailable for one that can't be opened. A damaged one is opened: what can be
// read of it is, every write is refused, and Health says why.
func Open(path string, opts Options) (*Store, error) {
	logger := opts.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{name: filepath.Base(path), logger: logger}
	if err := s.open(path, opts.NotEmpty); err != nil {
		return nil, s.explain(context.Background(), "open store", err)
	}
	return s, nil
}

func (s *Store) open(path string, notEmpty bool) error {
	if notEmpty && isEmpty(path) {
		return s.openDamaged(path, damage("the file is empty"))
	}
	if err := makeFile(path); err != nil {
		return err
	}
	db, err := prepare(path, s.logger)
	if isDamage(err) {
		return errors.Join(s.openDamaged(path, err), db.Close())
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	if s.readers, err = openReaders(path, "rw"); err != nil {
		return errors.Join(err, db.Close())
	}
	s.writer = newWriter(db, s.logger)
	s.close = sync.OnceValue(func() error {
		s.writer.stop() // from here on, explain takes the readers' errors for a closed store
		return errors.Join(s.readers.Close(), s.writer.close())
	})
	return nil
}

// openDamaged opens for reading only. A reader is connected at once: a writer that is the last
// one to close would move the write-ahead log into the file.
func (s *Store) openDamaged(path string, found error) (err error) {
	s.logger.Error("database damaged, nothing is written to it", "error", found)
	_ = s.explain(context.Background(), "open store", found) // notes it
	if s.readers, err = openReaders(path, "ro"); err != nil {
		return err
	}
	s.close = sync.OnceValue(s.readers.Close)
	_ = s.readers.PingContext(context.Background()) // what can't be read at all, each call says
	return nil
}

func isEmpty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// write has the one writer do a change, where there is one.
func (s *Store) write(ctx context.Context, change change) error {
	if s.writer == nil {
		_, trouble := s.health.last()
		return trouble
	}
	return s.writer.do(ctx, change)
}

// change is write with the error explained.
func (s *Store) change(ctx context.Context, operation string, change change) error {
	return s.explain(ctx, operation, s.write(ctx, change))
}

// changeRun is change for something of a run, by its seq. An unknown run is a NotFound fault.
func (s *Store) changeRun(
	ctx context.Context, operation, run string, change func(ctx context.Context, tx *transaction, seq int64) error,
) error {
	return s.change(ctx, operation, func(ctx context.Context, tx *transaction) error {
		seq, err := seqOf(ctx, tx, run)
		if err != nil {
			return err
		}
		return change(ctx, tx, seq)
	})
}

// Close waits for the writes that have begun and closes the database. Other writes and
// every later call fail with an Unavailable fault. Close may be called again and returns
// the same error.
func (s *Store) Close() error {
	if err := s.close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}
