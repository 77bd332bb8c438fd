// Package workers has runs go on at other machines: each is a worker, which asks the server for runs over HTTP and
// carries them out on an engine of its own. Everything that must be true stays here: the queue, records, budgets, keys.
//
//	Feature.Place      which machines take a run, for the queue
//	execution.Attempt  offers a run to the worker where it has its slot, and waits for its end (execution.go)
//	Feature.accept     gives a worker a lease, when it is stored (offer.go)
//	lease              what a worker has told of a run (lease.go); relay what its program asks (relay.go)
//	registry           which workers there are, and which of them is there (registry.go)
//	face               what workers ask over HTTP (face.go, files.go)
//
// A lease is stored in the transition to Starting, with a random id that fences the run: whoever names another one is
// refused. A worker that is away loses nothing: after Options.Grace its leases are void, and their runs are tried
// again, unless their units have effects.
//
// Its messages are in package wire. It must not know how a worker carries out a run, nor engines.
//
// Its Go API may change with every release: see docs/stability.md.
package workers

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/swarm"
	"github.com/agent-on-demand/aod/orchestrator/queue"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// Options are what a Feature needs.
type Options struct {
	Credentials *access.Tokens
	Version     string          // of this program
	Pins        func() []string // of the server's own certificate; nil: workers go by their roots
	Labels      []string        // of the server's own machine
	Grace       time.Duration   // after which a worker that is away counts as lost; default 2 minutes
	// Elsewhere says that units with containers run at workers alone.
	Elsewhere bool
	// Secrets are the names of those that the programs of a worker's runs may get, by the worker's name.
	Secrets map[string][]string
	Secret  func(name string) (secrets.Secret, error)
	// Stays reports whether a unit has settings that only the server itself can give its containers; nil: none has.
	Stays func(unit string) bool
	// Images are those of the server's engine, which workers fetch; nil: it has none for them.
	Images Images
	// Swarm has the nodes whose workers need no invitation; nil: there are none.
	Swarm *swarm.Swarm
}

// Feature implements feature.Feature, and knows the workers of a server.
type Feature struct {
	opts     Options
	process  feature.Process
	registry *registry
	leases   *leases
	offers   *offers
	logger   *slog.Logger
	ready    atomic.Bool // the runs of an earlier process are known

	lostAttempts atomic.Int64 // whose worker was lost
	listing      sync.Mutex   // a list of changes is in memory
	saving       *semaphore.Weighted
}

// New returns a Feature that knows nobody yet.
func New(opts Options) *Feature {
	if opts.Grace == 0 {
		opts.Grace = 2 * time.Minute
	}
	if opts.Stays == nil {
		opts.Stays = func(string) bool { return false }
	}
	return &Feature{
		opts: opts, leases: newLeases(), offers: newOffers(), saving: semaphore.NewWeighted(mostSaves),
	}
}

// Init implements feature.Initializer.
func (f *Feature) Init(p feature.Process) error {
	f.process, f.logger = p, p.Logger
	labels := []string{labelServer}
	if !f.opts.Elsewhere {
		labels = append(labels, labelSandbox)
	}
	for name := range f.opts.Secrets {
		labels = append(labels, f.secretLabels(name)...)
	}
	p.Machines.SetLabels(append(labels, f.opts.Labels...)...)
	f.registry = newRegistry(f, p.Store.Workers)
	return f.registry.open(p.Life)
}

// Join implements feature.Feature: a run has its part by its execution.
func (f *Feature) Join(context.Context, *run.Run, feature.Part) feature.Part { return indifferent{} }

type indifferent struct{ feature.Indifferent }

// Run implements feature.Runner: from here on every lease is known that is good.
func (f *Feature) Run(ctx context.Context) {
	f.registry.begin()
	f.ready.Store(true)
	var watching sync.WaitGroup
	if f.opts.Swarm != nil {
		watching.Go(func() { f.opts.Swarm.Watch(ctx, f.registry.showAll) })
	}
	for pause.For(ctx, look) == nil {
		f.registry.noteLost()
	}
	watching.Wait()
	f.ready.Store(false)
	f.registry.stop()
}

// Labels that no worker can have: they are ours.
const (
	labelServer  = "aod/server"
	labelSandbox = "aod/sandbox"
	labelWorker  = "aod/worker"
	labelSecret  = "aod/secret/" // of a machine whose programs may have the secret of that name
)

// secretLabels are those of a worker's secrets.
func (f *Feature) secretLabels(worker string) (labels []string) {
	for _, name := range f.opts.Secrets[worker] {
		labels = append(labels, labelSecret+name)
	}
	return labels
}

// hasSecrets reports whether a worker may have all secrets of a unit's program.
func (f *Feature) hasSecrets(worker string, u *unit.Unit) bool {
	for _, name := range u.Policy.Secrets {
		if !slices.Contains(f.opts.Secrets[worker], name) {
			return false
		}
	}
	return true
}

// secretsTravel reports whether a unit's program needs no secrets, or a worker may have them.
func (f *Feature) secretsTravel(u *unit.Unit) bool {
	travel := len(u.Policy.Secrets) == 0
	for worker := range f.opts.Secrets {
		travel = travel || f.hasSecrets(worker, u)
	}
	return travel
}

// secretsOf returns the secrets of a lease's program, and has them hidden in all that is told of its run. They are read
// once in a process.
func (f *Feature) secretsOf(l *lease) (map[string]secrets.Secret, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.secrets != nil {
		return l.secrets, nil
	}
	values, err := l.run.ReadSecrets(f.opts.Secret)
	l.secrets = values
	return values, err
}

// goes reports whether the runs of a unit can go on at a worker. What isn't here yet runs at the server.
func (f *Feature) goes(u *unit.Unit) bool {
	kinds := []unit.Kind{unit.Capsule, unit.AU, unit.Agent, unit.MCP}
	return slices.Contains(kinds, u.Kind) && f.secretsTravel(u) && u.Policy.Isolation == "" && !f.opts.Stays(u.Name)
}

// isContained reports whether the runs of a unit have containers.
func isContained(u *unit.Unit) bool { return u.Policy.Network != "" }

// Admit implements feature.Placer.
func (f *Feature) Admit(u *unit.Unit) error {
	if !f.opts.Elsewhere || !isContained(u) || f.goes(u) {
		return nil
	}
	return fault.New(fault.Unsupported, "%q runs at the server itself alone, which has no containers "+
		"(local_sandboxes: false)", u.Name).
		WithHint("set local_sandboxes: true; workers take capsules, Agentic Units, agents and MCP servers, " +
			"of those with secrets the ones whose secrets are in worker.NAME.secrets")
}

// Place implements feature.Placer.
func (f *Feature) Place(r *run.Run) (needs []string, prefers func(machine string) int) {
	switch {
	case !isContained(r.Unit):
		return []string{labelServer}, nil
	case !f.travels(r):
		return append([]string{labelServer, labelSandbox}, r.Unit.Policy.Needs...), nil
	}
	needs = append([]string{labelSandbox}, r.Unit.Policy.Needs...)
	for _, name := range r.Unit.Policy.Secrets {
		needs = append(needs, labelSecret+name)
	}
	need, machine := sessions{f}.placeOf(r)
	if need != "" {
		needs = append(needs, need)
	}
	return needs, f.preference(r, machine)
}

// travels reports whether a run can go on at a worker.
func (f *Feature) travels(r *run.Run) bool {
	return f.goes(r.Unit) && (r.Extra == nil || talkOf(r) != nil)
}

// preference ranks machines for a run: where its unit's image is, then where its caller is. A turn of a session goes
// nowhere but to the machine that has its container; "": to any.
func (f *Feature) preference(r *run.Run, session string) func(machine string) int {
	caller := f.leases.machineOf(r.Lineage.Parent)
	return func(machine string) (rank int) {
		if session != "" && machine != session && f.registry.keepers.has(session) {
			return queue.Never
		}
		if f.registry.images.has(machine, r.Unit) {
			rank += 2
		}
		if caller != nil && *caller == machine {
			rank++
		}
		return rank
	}
}

// Execution implements feature.Placer.
func (f *Feature) Execution(r *run.Run, kind run.Kind) run.Execution {
	if !isContained(r.Unit) || !f.travels(r) {
		return kind.Execution(r)
	}
	return newExecution(f, r, kind)
}

// Conversant implements feature.Placer.
func (f *Feature) Conversant(here run.Conversant) run.Conversant {
	return conversant{here, sessions{f}}
}

// machineOf returns a machine as the queue has it.
func (f *Feature) machineOf(w *worker) queue.Machine {
	labels := append([]string{labelSandbox, labelWorker}, f.secretLabels(w.name)...)
	return queue.Machine{
		Slots: w.about.Slots, Memory: w.about.MemoryBytes, Labels: append(labels, f.labelsOf(w)...),
		Closed: w.drained || w.about.Closed || w.stream == nil || f.nodeState(w) != "",
	}
}

// nodeState is what keeps the node of a worker from taking runs; "": nothing, or it has none.
func (f *Feature) nodeState(w *worker) string {
	if f.opts.Swarm == nil {
		return ""
	}
	return f.opts.Swarm.State(w.name, w.about.Node)
}

// labelsOf are what a worker tells of itself, and what the Swarm tells of its node.
func (f *Feature) labelsOf(w *worker) []string {
	if f.opts.Swarm == nil {
		return w.about.Labels
	}
	labels := slices.Concat(w.about.Labels, f.opts.Swarm.Labels(w.name, w.about.Node))
	slices.Sort(labels)
	return slices.Compact(labels)
}

// letGo reports whether a context ended because this process lets go of its runs.
func letGo(ctx context.Context) bool { return errors.Is(context.Cause(ctx), runtime.ErrDetach) }
