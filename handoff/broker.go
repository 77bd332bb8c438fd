package handoff

import (
	"context"
	"iter"
	"log/slog"

	"github.com/agent-on-demand/aod/api/fault"
)

// maxStarting is how many calls of one caller are read, checked and started at a time:
// arguments take many times their size while they are checked, and files are open.
const maxStarting = 4

// Broker makes the calls of one caller. It holds each call against the rules, opens its
// files, spends the budgets and hands it to the orchestrator. How the caller asks is not
// its concern: the capsule API asks over HTTP, other code of ours calls it. All methods
// may be called at the same time.
type Broker struct {
	caller   Caller
	runs     Runs
	limits   Limits
	starting chan struct{}
	keys     keys
	incoming incoming
	tally    tally
	log      *slog.Logger
}

// NewBroker returns the broker of one caller. A caller without a path is the root of its
// tree; one without a tree gets a tree of its own. A nil logger drops what it gets.
func NewBroker(caller Caller, runs Runs, limits Limits, logger *slog.Logger) *Broker {
	if caller.Tree == nil {
		caller.Tree = NewTree()
	}
	if len(caller.Path) == 0 {
		caller.Path = []Step{{Run: caller.Run, Unit: caller.Unit}}
	}
	return &Broker{
		caller:   caller,
		runs:     runs,
		limits:   limits.withDefaults(),
		starting: make(chan struct{}, maxStarting),
		keys:     keys{known: map[string]*key{}},
		incoming: incoming{dir: caller.Incoming, journal: journal{caller.Placed}},
		log:      newResponder(logger).log.With("run", caller.Run),
	}
}

// Caller returns whose calls these are, with its path and its tree.
func (b *Broker) Caller() Caller { return b.caller }

// Remember marks idempotency keys of calls that an earlier process made for this run:
// they were counted (see Tree.Restore), and are not counted again.
func (b *Broker) Remember(keys ...string) {
	for _, key := range keys {
		b.keys.remember(key)
		b.tally.count(nil)
	}
}

// Units returns the units that exist of those that the caller may call, each by the name
// that it is called by.
func (b *Broker) Units(ctx context.Context) (map[string]*Unit, error) {
	units := map[string]*Unit{}
	for _, name := range b.caller.Grants {
		unit, err := b.runs.Unit(ctx, name)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		units[name] = unit
	}
	return units, nil
}

// Unit returns a unit that the caller may call. The error is a *Refusal (RuleGrant) where
// it may not, and a NotFound fault where the unit doesn't exist.
func (b *Broker) Unit(ctx context.Context, name string) (*Unit, error) {
	if err := b.checkGrant(name); err != nil {
		return nil, err
	}
	return b.runs.Unit(ctx, name)
}

// Await returns a call of the caller's when it has ended, or as it stands when ctx ends.
// The call goes on in any case. A call of somebody else is a NotFound fault. The files of
// the result lie where the orchestrator keeps them; see Deliver.
func (b *Broker) Await(ctx context.Context, id string) (Result, error) {
	return b.runs.Await(ctx, id)
}

// Told yields how far a call of the caller's says it is, until the call's end or that of ctx.
// What is said faster than it is taken is passed over for what is newer.
func (b *Broker) Told(ctx context.Context, id string) iter.Seq[Progress] { return b.runs.Told(ctx, id) }

// Cancel asks a call of the caller's to end, and returns it as it stands then. A call that
// has ended stays as it is.
func (b *Broker) Cancel(ctx context.Context, id, reason string) (Result, error) {
	result, err := b.now(ctx, id)
	if err != nil || result.Ended {
		return result, err
	}
	if err := b.runs.Cancel(ctx, id, reason); err != nil && !fault.Is(err, fault.Conflict) {
		return Result{}, err
	}
	return b.now(ctx, id)
}

// now returns a call as it stands.
func (b *Broker) now(ctx context.Context, id string) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	return b.Await(ctx, id)
}
