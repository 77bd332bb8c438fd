package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// A database keeps the pages of what was deleted, and gives them back to its disk where it is made
// for that. One of an older version is made so once, by a copy of what is in it.
const (
	// compactMost is how many bytes may be in use for that, compactTime how long it may take: a
	// server that was down shall not stay so because it is large.
	compactMost = 1 << 30
	compactTime = 30 * time.Second
	// pagesAtOnce is how many pages one write gives back. Others come between two of them.
	pagesAtOnce = 500
)

// giving is the mode of a database that gives pages back; zero is one that doesn't.
const giving = "PRAGMA auto_vacuum = INCREMENTAL"

// pageUse is how many pages a database has, and what of them is used.
type pageUse struct{ size, all, free, mode int64 }

func pagesIn(ctx context.Context, db rower) (p pageUse, err error) {
	const question = `SELECT (SELECT page_size FROM pragma_page_size), (SELECT page_count FROM pragma_page_count),
		(SELECT freelist_count FROM pragma_freelist_count), (SELECT auto_vacuum FROM pragma_auto_vacuum)`
	err = db.QueryRowContext(ctx, question).Scan(&p.size, &p.all, &p.free, &p.mode)
	return p, err
}

// Compact has a database of an older version give pages back from now on, unless its disk has no
// room for a copy or it would take long. It is for the time before anybody writes. free is how many
// bytes may be written.
func (s *Store) Compact(ctx context.Context, free int64) {
	if s.core.writer == nil {
		return
	}
	p, err := pagesIn(ctx, s.core.readers)
	if err == nil && p.mode != 0 { // GiveBack does it
		return
	}
	used, began := (p.all-p.free)*p.size, time.Now()
	if used > compactMost || 2*used > free { // beside the copy there is the write-ahead log
		s.core.logger.Info("database not compacted, it keeps the room of what is removed", "bytes", p.all*p.size,
			"used", used, "free", free)
		return
	}
	if err == nil {
		err = s.compact(ctx)
	}
	if err != nil {
		s.core.logger.Warn("database not compacted, it keeps the room of what is removed", fault.LogAttr(err))
		return
	}
	s.core.logger.Info("database compacted", "bytes", p.all*p.size, "used", used, "ms",
		time.Since(began).Milliseconds())
}

// compact writes the database anew. Until the last step it is as it was.
func (s *Store) compact(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, compactTime)
	defer cancel()
	conn, err := s.core.writer.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, statement := range []string{giving, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("compact: %w", err)
		}
	}
	return nil
}

// Scrub does GiveBack, and empties the write-ahead log, as far as no reader holds it: nothing is left of what was
// erased.
func (s *Store) Scrub(ctx context.Context) error {
	if _, err := s.GiveBack(ctx); err != nil {
		return err
	}
	_, err := s.core.writer.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return s.core.explain(ctx, "empty the write-ahead log", err)
}

// GiveBack gives the pages that nothing uses back to the disk, and returns how many bytes that
// were. A database that Compact left as it was keeps them.
func (s *Store) GiveBack(ctx context.Context) (bytes int64, err error) {
	for ctx.Err() == nil {
		var given int64
		err := s.core.change(ctx, "give pages back", func(ctx context.Context, tx *transaction) (err error) {
			given, err = giveBack(ctx, tx)
			return err
		})
		if err != nil || given == 0 {
			return bytes, err
		}
		bytes += given
	}
	return bytes, context.Cause(ctx)
}

func giveBack(ctx context.Context, tx *transaction) (bytes int64, err error) {
	before, err := pagesIn(ctx, tx)
	if err != nil || before.free == 0 || before.mode == 0 {
		return 0, err
	}
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pagesAtOnce))
	if err != nil {
		return 0, err
	}
	for rows.Next() { // a row a page
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, err
	}
	after, err := pagesIn(ctx, tx)
	return (before.all - after.all) * before.size, err
}
