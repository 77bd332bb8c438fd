package orchestrator

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/feature/pushes"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Pushes are the settings for telling receivers elsewhere what happens in runs.
type Pushes struct {
	pushes.Options
	On bool // clients may ask for them, and what they have asked for is delivered
}

// RenderPushes has a Service make the bodies of pushes by render. Without it there are none. It
// has to be called before Start.
func (s *Service) RenderPushes(render pushes.Render) { s.render = render }

// PushesOn reports whether clients may ask for pushes.
func (s *Service) PushesOn() bool { return s.opts.Pushes.On && s.render != nil }

// deliverPushes makes the deliveries that are due, until ctx ends. What earlier processes left is
// among them.
func (s *Service) deliverPushes(ctx context.Context) {
	opts := s.opts.Pushes.Options
	opts.Logger, opts.Told = s.logger, s.metrics.PushTried
	pushes.New(pushBook{s.store}, s.render, opts).Run(ctx, s.store.PushNews())
}

// CreatePush has a receiver told of what happens in a run from now on. A push of the same id gets
// this receiver, and one without an id that is like another is that one. The error is a fault:
// Unsupported where there are no pushes, Input with findings for a receiver that is refused,
// NotFound for an unknown run, TooLarge if it has too many.
func (s *Service) CreatePush(ctx context.Context, id string, c api.PushConfig) (api.Push, error) {
	if err := s.admits(ctx); err != nil {
		return api.Push{}, err
	}
	if err := s.seen(ctx, id); err != nil {
		return api.Push{}, err
	}
	p, err := s.pushOf(ctx, c)
	if err != nil {
		return api.Push{}, err
	}
	other, err := run.NewID()
	if err != nil {
		return api.Push{}, err
	}
	p.Run = id
	stored, err := s.store.PutPush(ctx, p, other)
	if err != nil {
		return api.Push{}, err
	}
	s.logger.Info("push stored", "run", id, "push", stored.Seq)
	return shownPush(stored), nil
}

// pushOf checks what a client says of a receiver.
func (s *Service) pushOf(ctx context.Context, c api.PushConfig) (store.Push, error) {
	if !s.PushesOn() {
		return store.Push{}, fault.New(fault.Unsupported, "this server makes no pushes").
			WithHint("follow the run's events, or have the operator set a2a.push")
	}
	t, err := pushes.TargetOf(ctx, c, s.opts.Pushes.Door)
	if err != nil {
		return store.Push{}, err
	}
	return store.Push{
		ID: c.ID, URL: t.URL, Host: t.Host, Token: t.Token, Scheme: t.Scheme, Credentials: t.Credentials,
		CreatedAt: time.Now().UTC(),
	}, nil
}

// pushesOf checks the pushes of a submission. Each gets an id.
func (s *Service) pushesOf(ctx context.Context, configs []api.PushConfig) ([]store.Push, error) {
	if len(configs) > store.MaxPushes {
		return nil, fault.New(fault.TooLarge, "the run would have %d pushes; %d are allowed", len(configs),
			store.MaxPushes).WithHint("leave some out")
	}
	var all []store.Push
	for _, c := range configs {
		p, err := s.pushOf(ctx, c)
		if err != nil {
			return nil, err
		}
		if p.ID == "" {
			if p.ID, err = run.NewID(); err != nil {
				return nil, err
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// Push returns a push of a run as far as it is shown, or a NotFound fault.
func (s *Service) Push(ctx context.Context, id, pushID string) (api.Push, error) {
	if err := s.seen(ctx, id); err != nil {
		return api.Push{}, err
	}
	p, err := s.store.Push(ctx, id, pushID)
	if err != nil {
		return api.Push{}, err
	}
	return shownPush(p), nil
}

// Pushes lists the pushes of a run, the oldest first. An unknown run is a NotFound fault.
func (s *Service) Pushes(ctx context.Context, id string) ([]api.Push, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	rows, err := s.store.Pushes(ctx, id)
	all := make([]api.Push, 0, len(rows))
	for _, p := range rows {
		all = append(all, shownPush(p))
	}
	return all, err
}

// DeletePush has a receiver hear nothing more of a run, but for a request that is under way. A
// push that isn't there is a NotFound fault.
func (s *Service) DeletePush(ctx context.Context, id, pushID string) error {
	if err := s.admits(ctx); err != nil {
		return err
	}
	if err := s.seen(ctx, id); err != nil {
		return err
	}
	return s.store.DeletePush(ctx, id, pushID)
}

// PushBacklog returns how many events receivers still have to be told of.
func (s *Service) PushBacklog(ctx context.Context) (int64, error) { return s.store.PushBacklog(ctx) }

func shownPush(p store.Push) api.Push {
	return api.Push{
		ID: p.ID, URL: p.URL, Scheme: p.Scheme, CreatedAt: p.CreatedAt,
		Deliveries: api.PushDeliveries{Delivered: p.Delivered, Waiting: p.Waiting, Lost: p.Lost},
		TriedAt:    orNil(p.TriedAt), Status: p.Status, NextAt: orNil(p.NextAt), GivenUpAt: orNil(p.GivenUpAt),
		Reason: api.PushEnd(p.Reason),
	}
}

// pushBook is the store as a pushes.Book.
type pushBook struct{ *store.Store }

// Due implements pushes.Book.
func (b pushBook) Due(
	ctx context.Context, at time.Time, besides pushes.Besides, limit int,
) ([]pushes.Due, time.Time, error) {
	rows, next, err := b.DuePushes(ctx, at, store.Besides(besides), limit)
	due := make([]pushes.Due, 0, len(rows))
	for _, row := range rows {
		due = append(due, pushes.Due{Push: row.Seq, Host: row.Host})
	}
	return due, next, err
}

// First implements pushes.Book.
func (b pushBook) First(ctx context.Context, seq int64) (pushes.Delivery, bool, error) {
	d, err := b.NextDelivery(ctx, seq)
	if fault.Is(err, fault.NotFound) {
		return pushes.Delivery{}, false, nil
	}
	to := pushes.Target{
		URL: d.Push.URL, Host: d.Push.Host, Token: d.Push.Token, Scheme: d.Push.Scheme,
		Credentials: d.Push.Credentials,
	}
	return pushes.Delivery{
		Push: d.Push.Seq, Run: d.Push.Run, To: to, Event: eventOf(d.Event), At: d.Event.At,
		Tries: d.Tries,
	}, err == nil, err
}

// Note implements pushes.Book.
func (b pushBook) Note(ctx context.Context, d pushes.Delivery, r pushes.Result) error {
	return b.NoteTry(ctx, store.Try{
		Push: d.Push, Event: d.Event.Seq, At: r.At, Status: r.Status, Delivered: r.Word == pushes.Delivered,
		Nothing: r.Word == pushes.Nothing,
		Next:    r.Next, Reason: string(r.Word),
	})
}
