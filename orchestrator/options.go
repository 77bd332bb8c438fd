package orchestrator

import (
	"log/slog"
	goruntime "runtime"
	"time"

	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/quotas"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/traces"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
)

// Options are the settings of a Service or of Local. A zero field has the default that is
// named with it.
type Options struct {
	Home    string    // a Service's directory, for it alone; the data directory of Local
	Sources []string  // of a Service: directories of units, see registry.Options
	Bundled string    // likewise: the directory of units that come with AOD, or ""
	Kinds   run.Kinds // the kinds of unit that can be run
	Logger  *slog.Logger
	Limits  runtime.Limits // in force where a unit says nothing
	Version string         // of the program, for the metrics

	// that all runs together may take; of a Service default 80 % of the machine's, of Local none
	MemoryBytes int64
	Concurrency int           // runs at once; default twice the number of CPUs
	Queue       int           // how many runs of one unit may wait; default 100
	QueueWait   time.Duration // how long one may wait; default 10 minutes
	Retries     int           // after an attempt that failed for a transient reason; default 0
	RetryDelay  time.Duration // before the first retry, twice as long before each other; default 1 s
	// the longest that a run may ask for, and that one of a Service may take; default 24 hours
	MaxTimeout time.Duration

	Handoffs handoff.Limits // of what runs may call; zero fields are the defaults

	Features []feature.Feature  // what takes part in runs
	Mounts   []capsuleapi.Mount // further protocols that capsules speak

	Sessions int // containers that live on between the turns of sessions, of a Service; default 8

	PayloadBytes int64 // of an input; default 1 MiB
	MinFreeDisk  int64 // on the disks of the home and of the engine; below it nothing new begins; default 0, no bound

	RetentionAge  time.Duration // of finished runs; 0 keeps them
	RetentionSize int64         // of all that is kept of finished runs, in bytes; 0 is no bound
	SweepInterval time.Duration // default 10 minutes
	AuditAge      time.Duration // of what is in the audit; default 400 days

	Traces *traces.Runs // are told of which trace each run is; nil: nobody wants to know

	AroundCommit func(commit func() error) error // of a test: see store.Options

	Units map[string]units.Settings // by name

	Quotas quotas.Given // the most that teams and tokens may have
	// Teams are those of which nobody else's units begin with their names.
	Teams access.Teams
	// Bounds are the most that a unit may have, an uploaded one or one of a directory; nil
	// bounds nothing beside MaxTimeout.
	Bounds func(name string, uploaded bool) unit.Bounds
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&o.Concurrency, 2*goruntime.NumCPU())
	setDefault(&o.Queue, 100)
	setDefault(&o.QueueWait, 10*time.Minute)
	setDefault(&o.RetryDelay, time.Second)
	setDefault(&o.MaxTimeout, 24*time.Hour)
	setDefault(&o.Sessions, 8)
	setDefault(&o.PayloadBytes, 1<<20)
	setDefault(&o.SweepInterval, 10*time.Minute)
	setDefault(&o.AuditAge, 400*24*time.Hour)
	if o.Handoffs.Memory == nil {
		o.Handoffs.Memory = bytegate.New(0)
	}
	o.Limits = o.Limits.Or(runtime.DefaultLimits())
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
