package store

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	sqlite3 "modernc.org/sqlite/lib"
)

// Store is an open database, by what it has: each of its fields has the methods of one noun. They and
// its own may be called by many goroutines at once.
type Store struct {
	Runs        *Runs
	Events      *Events
	Keys        *Keys
	Steps       *Steps
	ModelCalls  *ModelCalls
	Questions   *Questions
	Sessions    *Sessions
	Schedules   *Schedules
	Occurrences *Occurrences
	Pushes      *Pushes
	Webhooks    *Webhooks
	Deliveries  *Deliveries
	Units       *Units
	Signins     *Signins
	Workers     *Workers
	Audits      *Audits
	Usages      *Usages
	Feed        *Feed

	core *core
}

func newStore(c *core) *Store {
	return &Store{
		Runs: &Runs{c}, Events: &Events{c}, Keys: &Keys{c}, Steps: &Steps{c}, ModelCalls: &ModelCalls{c},
		Questions: &Questions{c}, Sessions: &Sessions{c}, Schedules: &Schedules{c}, Occurrences: &Occurrences{c},
		Pushes: &Pushes{c}, Deliveries: &Deliveries{c}, Units: &Units{c}, Signins: &Signins{c}, Feed: &Feed{c},
		Audits: &Audits{c}, Usages: &Usages{c}, Webhooks: &Webhooks{c}, Workers: &Workers{c}, core: c,
	}
}

// Options configure a Store. The zero Options are fine.
type Options struct {
	Logger   *slog.Logger // nil: nothing is logged
	NotEmpty bool         // the database has content: an empty file in its place is damage
	// AroundCommit commits each write by itself, before its caller has an answer: a test looks at what is
	// on the disk before and after. nil: writes share a commit.
	AroundCommit func(commit func() error) error
}

// Open opens the database at path, and looks it through for damage as far as that goes in its
// time. A missing file is made with mode 0600, and its directory with mode 0700 if only that is
// missing. The error is a fault: Unsupported for a file of another version, Conflict for a database
// of something else, Unavailable for one that can't be opened. A damaged one is opened: what can be
// read of it is, every write is refused, and Health says why.
func Open(path string, opts Options) (*Store, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	c := &core{name: filepath.Base(path), logger: opts.Logger}
	if err := c.open(path, opts); err != nil {
		return nil, c.explain(context.Background(), "open store", err)
	}
	return newStore(c), nil
}

// Health returns the Unavailable fault because of which nothing new should be stored, or nil.
// A full disk passes when something can be written again, an error of the disk when the
// database was found to be whole after it. Damage stays until the next Open. It is cheap, and
// tries at most once a second.
func (s *Store) Health(ctx context.Context) error {
	if s.core.health.turn() {
		code, _ := s.core.health.last()
		if s.core.probe(ctx, code) == nil {
			s.core.health.passed(code)
		}
	}
	_, trouble := s.core.health.last()
	return trouble
}

// Damaged reports whether the database is damaged as far as it is known.
func (s *Store) Damaged() bool {
	code, _ := s.core.health.last()
	return gravity(code) == gravity(sqlite3.SQLITE_CORRUPT)
}

// Close waits for the writes that have begun and closes the database. Other writes and
// every later call fail with an Unavailable fault. Close may be called again and returns
// the same error.
func (s *Store) Close() error {
	if err := s.core.close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}
