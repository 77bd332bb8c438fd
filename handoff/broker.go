package handoff

import (
	"context"
	"iter"
	"log/slog"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
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
	rules    rules
	starting chan struct{}
	keys     keys
	outgoing outgoing
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
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	limits = limits.withDefaults()
	return &Broker{
		caller:   caller,
		runs:     runs,
		limits:   limits,
		rules:    rules{caller, limits},
		starting: make(chan struct{}, maxStarting),
		keys:     keys{known: map[string]*key{}},
		outgoing: outgoing{caller.Outgoing, caller.Transfer, limits.Files, limits.FileBytes},
		incoming: incoming{dir: caller.Incoming, journal: journal{caller.Placed}},
		log:      logger.With("run", caller.Run),
	}
}

// Caller returns whose calls these are, with its path and its tree.
func (b *Broker) Caller() Caller { return b.caller }

// Limits returns the operator's limits, with the defaults of those that aren't set.
func (b *Broker) Limits() Limits { return b.limits }

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
	if err := b.rules.checkGrant(name); err != nil {
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

// Deliver gives the caller the files of a call that has ended: it puts them into the
// caller's incoming directory, each of them whole. Asked again it answers the same. For a
// caller without that directory the files stay where they lie. The error is an Unavailable
// or Internal fault.
func (b *Broker) Deliver(ctx context.Context, id string, files []Output) ([]PlacedFile, error) {
	if b.caller.Incoming == "" {
		return whereTheyLie(files), nil
	}
	placed, err := b.incoming.deliver(id, files)
	if err != nil || b.caller.Transfer == nil {
		return placed, err
	}
	names := make([]string, 0, len(placed))
	for _, f := range placed {
		names = append(names, strings.TrimPrefix(f.Path, string(contract.StageIncoming)+"/"))
	}
	return placed, deliveryFault(b.caller.Transfer.Send(ctx, names))
}

// OpenOutput opens a file that the caller has written to /io/output.
func (b *Broker) OpenOutput(ctx context.Context, name string) (File, error) {
	if b.caller.Transfer == nil && b.caller.Output == "" {
		return File{}, fault.New(fault.Unsupported, "this run has no directory %s", contract.StageOutput).
			WithHint("send text or data")
	}
	root, leave, err := b.outgoing.openStage(ctx, contract.StageOutput, b.caller.Output, name)
	if err != nil {
		return File{}, err
	}
	defer leave()
	file, err := openFile(root, name, name, stage{contract.StageOutput, "write", "first", "artifact"})
	if most := b.outgoing.maxBytes; err == nil && b.caller.Transfer != nil && file.Size > most {
		_ = file.Open.Close() // read only
		return File{}, fault.New(fault.TooLarge, "the file has more than the %d bytes that can be shown now", most).
			WithHint("leave it in %s: it is a file of the result", contract.StageOutput)
	}
	return file, err
}

// AllRefused returns how many calls the caller asked for, and why the last of them was
// refused, if every one was; else 0.
func (b *Broker) AllRefused() (calls int, last *fault.Error) { return b.tally.allRefused() }

// tally counts what became of the calls of one caller.
type tally struct {
	mu      sync.Mutex
	made    bool
	refused int
	last    *fault.Error // why
}

// count counts a call that was asked for. Where the server could make none at the moment, it
// doesn't count.
func (t *tally) count(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil:
		t.made = true
	case IsAboutCall(err):
		t.refused++
		t.last = fault.Public(err)
	}
}

// allRefused returns how many calls were refused, and why the last of them was, if every one was.
func (t *tally) allRefused() (calls int, last *fault.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.made {
		return 0, nil
	}
	return t.refused, t.last
}
