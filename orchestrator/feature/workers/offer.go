package workers

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// offerTime is how long a worker that is there may take to accept a run.
const offerTime = 10 * time.Second

// offer is a run for which a worker has a slot.
type offer struct {
	id, worker string
	accepted   chan string // gets the nonce with which it was accepted
	leased     chan *lease // gets the lease when it is stored; nil: there is none
	declined   chan struct{}
}

// offers are those that nobody has accepted yet.
type offers struct {
	mu   sync.Mutex
	open map[string]*offer
}

func newOffers() *offers { return &offers{open: map[string]*offer{}} }

// make makes an offer to a worker.
func (o *offers) make(worker string) *offer {
	made := &offer{
		id: rand.Text(), worker: worker, accepted: make(chan string, 1), leased: make(chan *lease, 1),
		declined: make(chan struct{}),
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open[made.id] = made
	return made
}

// take takes an offer, for the worker to which it was made; nil: it isn't there any more.
func (o *offers) take(id, worker string) *offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.open[id]
	if taken == nil || taken.worker != worker {
		return nil
	}
	delete(o.open, id)
	return taken
}

// decline has a worker take none of those that it has been made.
func (o *offers) decline(worker string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, of := range o.open {
		if of.worker == worker {
			delete(o.open, id)
			close(of.declined)
		}
	}
}

// withdraw reports whether an offer was still open, which it isn't any more.
func (o *offers) withdraw(of *offer) bool { return o.take(of.id, of.worker) != nil }

// accept gives a worker a lease of a run that it was offered. The same acceptance again gets the same answer.
func (f *Feature) accept(ctx context.Context, worker string, a wire.Acceptance) (*lease, error) {
	if l := f.leases.accepted(worker, a.Nonce); l != nil {
		return l, nil
	}
	if !f.ready.Load() {
		return nil, errEnds
	}
	of := f.offers.take(a.Offer, worker)
	if of == nil {
		return nil, errVoid
	}
	of.accepted <- a.Nonce
	select {
	case l := <-of.leased:
		if l == nil {
			return nil, errVoid
		}
		return l, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errVoid says that an offer or a lease isn't good any more.
var errVoid = fault.New(fault.Conflict, "the run isn't this worker's any more").
	WithHint("remove what is left of it")

// offered offers a run to the worker where it has its slot, and returns the nonce with which that accepts it. The error
// is run.ErrUnplaced where it doesn't.
func (f *Feature) offered(ctx context.Context, r *run.Run) (*offer, string, error) {
	name := r.Record.Worker
	w := f.registry.find(name)
	if w == nil || f.registry.presence(name) != there {
		f.registry.suspect(name)
		return nil, "", run.ErrUnplaced
	}
	of := f.offers.make(name)
	key := "offer/" + of.id
	w.put(key, wire.Order{Offer: &wire.Offer{ID: of.id}})
	defer w.drop(key)
	late := time.NewTimer(offerTime)
	defer late.Stop()
	var err error
	select {
	case nonce := <-of.accepted:
		return of, nonce, nil
	case <-of.declined:
		return nil, "", run.ErrUnplaced
	case <-late.C:
		err = run.ErrUnplaced
	case <-f.registry.gone(name):
		err = run.ErrUnplaced
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if f.offers.withdraw(of) {
		if err == run.ErrUnplaced { //nolint:errorlint // it is that very one
			f.registry.suspect(name)
		}
		return nil, "", err
	}
	select { // it was accepted, or declined, at that moment
	case nonce := <-of.accepted:
		return of, nonce, nil
	case <-of.declined:
		return nil, "", run.ErrUnplaced
	}
}

// assignment is what a worker has to know of a run.
func (f *Feature) assignment(l *lease) wire.Assignment {
	r, u := l.run, l.run.Unit
	a := wire.Assignment{
		Lease: l.ID, Run: r.ID, Root: r.Lineage.Root, Parent: r.Lineage.Parent, Attempt: l.Attempt,
		Path: r.Lineage.Path, Grants: r.Grants, Limits: r.Limits, Input: r.Input.Payload.JSON(),
		Files: filesIn(r.InputDir()), Start: r.Start, Project: r.Project, Session: l.session,
		Talk: l.talk != nil,
		Unit: wire.Of{
			Name: u.Name, Version: u.Version, Upload: u.Source == unit.FromUpload, Network: u.Policy.Network,
			ReadWrite: u.Policy.ReadWrite, Writable: u.Policy.Writable, Isolation: u.Policy.Isolation,
			Env: u.Policy.Env, Models: u.Policy.Models, Upstreams: u.Policy.Upstreams, Secrets: u.Policy.Secrets,
			Warm: u.Policy.Warm, Reuse: u.Policy.Reuse,
			BuildNetwork: u.Policy.Bounds.NetworkOfBuilds(), NoFetch: u.Policy.Bounds.NoFetch,
			ImageBytes: u.Policy.Bounds.ImageBytes, Egress: u.Policy.Egress.Strings(),
			EgressBounded: u.Policy.Bounds.Egress != nil, EgressCap: u.Policy.Bounds.Egress.Strings(),
		},
	}
	if end := r.Lineage.Deadline; !end.IsZero() {
		a.Left = max(time.Until(end), time.Millisecond)
	}
	return a
}
