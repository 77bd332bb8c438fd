package pushes

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Feature implements feature.Feature: it tells receivers elsewhere what happens in runs.
type Feature struct {
	opts    Options
	render  Render  // nil: nothing is told to receivers that clients of runs name
	hooks   Compose // nil: there are no webhooks
	library feature.Library
	gate    feature.Gate
	store   *store.Store
	logger  *slog.Logger
	figures *figures
	teams   access.Teams
	noHooks atomic.Bool // Options.NoHooks, or what AllowHooks said
}

// NewFeature returns a Feature that tells nothing before Render was called.
func NewFeature(opts Options) *Feature {
	f := &Feature{opts: opts.withDefaults(), figures: newFigures()}
	f.noHooks.Store(opts.NoHooks)
	return f
}

// AllowHooks has webhooks be told, or not, from now on, and these hosts of their receivers be at addresses that aren't
// public. A connection that is open by now is used on for half a minute at most.
func (f *Feature) AllowHooks(allow bool, private []outside.Exception) {
	f.opts.Hooks.Except(private)
	f.noHooks.Store(!allow)
}

// Render has bodies made by render, from Run on.
func (f *Feature) Render(render Render) { f.render = render }

// Webhooks has what webhooks tell made by compose, from Run on.
func (f *Feature) Webhooks(compose Compose) { f.hooks = compose }

// HookTo checks the address of the receiver of a webhook, and where its name leads now. The error is a fault:
// Unsupported where there are no webhooks, Input with findings for an address that is refused.
func (f *Feature) HookTo(ctx context.Context, address string) (Target, error) {
	if f.noHooks.Load() {
		return Target{}, fault.New(fault.Unsupported, "this server has no webhooks").
			WithHint("the operator can allow them by webhooks.enabled: true")
	}
	return Approach{f.opts.Hooks, "webhook", "webhooks.private"}.To(ctx, address)
}

// SendHook makes one request to the receiver of a webhook, and says what became of it, and the status of the answer.
func (f *Feature) SendHook(ctx context.Context, to Target, m Message) (Word, int) {
	s := newSender(f.opts, f.opts.Hooks)
	defer s.close()
	return s.send(ctx, to, m)
}

// Init implements feature.Initializer. Runs that end with the process tell nobody.
func (f *Feature) Init(p feature.Process) error {
	f.library, f.gate, f.store, f.logger = p.Library, p.Gate, p.Store, p.Logger
	f.teams = p.Teams
	f.figures.backlog = func(ctx context.Context) (int64, error) { return f.backlog(ctx, store.Owned{}) }
	return nil
}

// Collectors returns the metrics of all deliveries.
func (f *Feature) Collectors() []prometheus.Collector { return f.figures.collectors() }

// Run implements feature.Runner: it makes the deliveries that are due, until ctx ends. What earlier processes
// left is among them.
func (f *Feature) Run(ctx context.Context) {
	opts := f.opts
	opts.Logger, opts.Told = f.logger, f.figures.tried
	d := New(OverStore(f.store.Deliveries), f.compose, opts)
	d.left = func() Besides {
		return Besides{Named: f.render == nil, Webhooks: f.hooks == nil || f.noHooks.Load()}
	}
	d.Run(ctx, f.store.Deliveries.News())
}

// compose makes the message of a delivery, by whose it is.
func (f *Feature) compose(ctx context.Context, d Delivery) (Message, error) {
	if d.Webhook != "" {
		return f.hooks(ctx, d)
	}
	return f.render.Compose(ctx, d)
}

type targetsKey struct{}

// WithTargets has receivers told of the run that is asked for with a context, from its first event on.
func (*Feature) WithTargets(ctx context.Context, targets []api.PushConfig) context.Context {
	return context.WithValue(ctx, targetsKey{}, targets)
}

// Join implements feature.Feature.
func (f *Feature) Join(ctx context.Context, _ *run.Run, caller feature.Part) feature.Part {
	p := &part{feature: f}
	if caller == nil {
		p.targets, _ = ctx.Value(targetsKey{}).([]api.PushConfig)
	}
	return p
}

type part struct {
	feature.Indifferent
	feature *Feature
	targets []api.PushConfig
}

// Prepare implements feature.Part: each push gets an id.
func (p *part) Prepare(ctx context.Context) (rows []store.WithRun, err error) {
	if len(p.targets) > store.MaxPushes {
		return nil, fault.New(fault.TooLarge, "the run would have %d pushes; %d are allowed", len(p.targets),
			store.MaxPushes).WithHint("leave some out")
	}
	for _, c := range p.targets {
		push, err := p.feature.pushOf(ctx, c)
		if err != nil {
			return nil, err
		}
		if push.ID == "" {
			if push.ID, err = run.NewID(); err != nil {
				return nil, err
			}
		}
		rows = append(rows, push)
	}
	return rows, nil
}

// pushOf checks what a client says of a receiver.
func (f *Feature) pushOf(ctx context.Context, c api.PushConfig) (store.Push, error) {
	if f == nil || f.render == nil {
		return store.Push{}, fault.New(fault.Unsupported, "this server tells no receivers").
			WithHint("follow the run's events; the operator can allow it by a2a.push: true")
	}
	t, err := TargetOf(ctx, c, f.opts.Door)
	if err != nil {
		return store.Push{}, err
	}
	return store.Push{
		ID: c.ID, URL: t.URL, Host: t.Host, Token: t.Token, Scheme: t.Scheme, Credentials: t.Credentials,
		CreatedAt: time.Now().UTC(),
	}, nil
}

// CreatePush has a receiver told of what happens in a run from now on. A push of the same id gets
// this receiver, and one without an id that is like another is that one. The error is a fault:
// Unsupported where there are no pushes, Input with findings for a receiver that is refused,
// NotFound for an unknown run, TooLarge if it has too many.
func (f *Feature) CreatePush(ctx context.Context, id string, c api.PushConfig) (api.Push, error) {
	if err := f.admits(ctx, id); err != nil {
		return api.Push{}, err
	}
	p, err := f.pushOf(ctx, c)
	if err != nil {
		return api.Push{}, err
	}
	other, err := run.NewID()
	if err != nil {
		return api.Push{}, err
	}
	p.Run = id
	stored, err := f.store.Pushes.Put(audited(ctx, "put", id), p, other)
	if err != nil {
		return api.Push{}, err
	}
	f.logger.Info("push stored", "run", id, "push", stored.Seq)
	return shown(stored), nil
}

// admits returns a fault while nothing of a run may be changed, or where its client may not know of it.
func (f *Feature) admits(ctx context.Context, id string) error {
	if err := f.gate.Admits(ctx); err != nil {
		return err
	}
	_, err := f.library.RunDir(ctx, id)
	return err
}

// Push returns a push of a run as far as it is shown, or a NotFound fault.
func (f *Feature) Push(ctx context.Context, id, pushID string) (api.Push, error) {
	if _, err := f.library.RunDir(ctx, id); err != nil {
		return api.Push{}, err
	}
	p, err := f.store.Pushes.Get(ctx, id, pushID)
	if err != nil {
		return api.Push{}, err
	}
	return shown(p), nil
}

// Pushes lists the pushes of a run, the oldest first. An unknown run is a NotFound fault.
func (f *Feature) Pushes(ctx context.Context, id string) ([]api.Push, error) {
	if f == nil {
		return nil, fault.New(fault.Unsupported, "this server makes no pushes")
	}
	if _, err := f.library.RunDir(ctx, id); err != nil {
		return nil, err
	}
	rows, err := f.store.Pushes.List(ctx, id)
	all := make([]api.Push, 0, len(rows))
	for _, p := range rows {
		all = append(all, shown(p))
	}
	return all, err
}

// DeletePush has a receiver hear nothing more of a run, but for a request that is under way. A
// push that isn't there is a NotFound fault.
func (f *Feature) DeletePush(ctx context.Context, id, pushID string) error {
	if err := f.admits(ctx, id); err != nil {
		return err
	}
	return f.store.Pushes.Delete(audited(ctx, "remove", id), id, pushID)
}

// audited returns a context of what the client of ctx does with a push of a run.
func audited(ctx context.Context, verb, id string) context.Context {
	return store.Audit(ctx, store.Audited{Team: access.OwnerOf(ctx).Team, Verb: verb, Noun: "push", Object: id})
}

// PushBacklog returns of how many events receivers still have to be told: with teams, of the runs that the client of
// ctx may know of.
func (f *Feature) PushBacklog(ctx context.Context) (int64, error) {
	if !f.teams.Any() {
		return f.backlog(ctx, store.Owned{})
	}
	return f.backlog(ctx, store.OwnedFor(ctx))
}

func (f *Feature) backlog(ctx context.Context, owned store.Owned) (int64, error) {
	if f.store == nil {
		return 0, errors.New("no run outlives this process")
	}
	return f.store.Pushes.Backlog(ctx, owned)
}

func shown(p store.Push) api.Push {
	return api.Push{
		ID: p.ID, URL: p.URL, Scheme: p.Scheme, CreatedAt: p.CreatedAt,
		Deliveries: api.PushDeliveries{Delivered: p.Delivered, Waiting: p.Waiting, Lost: p.Lost},
		TriedAt:    api.TimeOrNil(p.TriedAt), NextAt: api.TimeOrNil(p.NextAt), GivenUpAt: api.TimeOrNil(p.GivenUpAt),
		Status: p.Status, Reason: api.PushEnd(p.Reason),
	}
}
