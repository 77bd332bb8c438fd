package schedules

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Options are what a Scheduler works with.
type Options struct {
	Host         Host
	Store        *store.Store
	Dir          string // has the files that schedules give to their runs
	PayloadBytes int64  // of an input
	Clock        Clock  // default the machine's
	Logger       *slog.Logger

	Became func(o api.OccurrenceOutcome, n int) // is told what became of n occurrences
	Late   func(by time.Duration)               // is told of each one that has its run
}

// Host leads the runs that a Scheduler starts. It calls Join for each of them that goes on, and
// Leave at its end.
type Host interface {
	// Admits returns a fault while nothing may be changed and no run begin.
	Admits(ctx context.Context) error
	// ShuttingDown reports whether no run is admitted because of this process, not because of
	// the run.
	ShuttingDown() bool
	// Permits returns a fault if a unit can't be run, whatever its input is.
	Permits(ctx context.Context, unit string) error
	// Check returns a fault if a run would be refused. It starts nothing.
	Check(ctx context.Context, r Request) error
	// Start starts the run of an occurrence. The two are stored in one transaction, or neither is.
	Start(ctx context.Context, r Request, o store.Occurrence) (api.Record, error)
	// Cancel has a run end.
	Cancel(ctx context.Context, id, reason string) (api.Record, error)
	// NewSpool returns an empty spool, for the files of a run.
	NewSpool() (*spool.Spool, error)
}

// Request is what each run of a schedule is asked for with.
type Request struct {
	Schedule   string // its name
	Unit       string
	Input      json.RawMessage
	Files      *spool.Spool // nil: none
	Timeout    time.Duration
	Metadata   map[string]string
	Unattended bool // nobody answers its questions
}

// Scheduler starts the runs of schedules at their times. It is safe for concurrent use.
type Scheduler struct {
	opts   Options
	host   Host
	store  *store.Store
	clock  Clock
	logger *slog.Logger
	table  *timetable
}

// New returns a Scheduler without schedules. It starts nothing.
func New(opts Options) *Scheduler {
	if opts.Clock == nil {
		opts.Clock = wallClock{}
	}
	return &Scheduler{
		opts: opts, host: opts.Host, store: opts.Store, clock: opts.Clock, logger: opts.Logger,
		table: newTimetable(),
	}
}

// Join notes that a run of a schedule goes on.
func (s *Scheduler) Join(name, run string) { s.table.join(name, run) }

// Leave notes that a run of a schedule has ended: what waited for it may begin.
func (s *Scheduler) Leave(name, run string) { s.table.leave(name, run) }

// NextOf returns when the next run of a unit is due; nil if there is none.
func (s *Scheduler) NextOf(unit string) *api.NextTime { return s.table.nextOf(unit) }
