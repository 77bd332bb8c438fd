package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
)

// Store is an open database. Its methods may be called by many goroutines at once.
type Store struct {
	name    string // of the file, for hints
	readers *sql.DB
	writer  *writer
	close   func() error
}

// Options configure a Store. The zero Options are fine.
type Options struct {
	Logger *slog.Logger // nil: nothing is logged
}

// Open opens the database at path and migrates it to this version. A missing file is made
// with mode 0600, and its directory with mode 0700 if only that is missing. The error is a
// fault: Unsupported for a file of a newer version, Conflict for a database of something
// else, Unavailable for one that is damaged or can't be opened.
func Open(path string, opts Options) (*Store, error) {
	logger := opts.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{name: filepath.Base(path)}
	if err := s.open(path, logger); err != nil {
		return nil, s.explain(context.Background(), "open store", err)
	}
	return s, nil
}

func (s *Store) open(path string, logger *slog.Logger) error {
	if err := makeFile(path); err != nil {
		return err
	}
	db, err := prepare(path, logger)
	if err != nil {
		return err
	}
	if s.readers, err = openReaders(path); err != nil {
		return errors.Join(err, db.Close())
	}
	s.writer = newWriter(db, logger)
	s.close = sync.OnceValue(func() error {
		s.writer.stop() // from here on, explain takes the readers' errors for a closed store
		return errors.Join(s.readers.Close(), s.writer.close())
	})
	return nil
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
