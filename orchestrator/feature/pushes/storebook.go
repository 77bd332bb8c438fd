package pushes

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// OverStore returns the Book of a server.
func OverStore(d *store.Deliveries) Book { return storeBook{d} }

type storeBook struct{ deliveries *store.Deliveries }

// Due implements Book.
func (b storeBook) Due(ctx context.Context, at time.Time, besides Besides, limit int) ([]Due, time.Time, error) {
	rows, next, err := b.deliveries.Due(ctx, at, store.Besides(besides), limit)
	due := make([]Due, 0, len(rows))
	for _, row := range rows {
		due = append(due, Due{Push: row.Seq, Host: row.Host})
	}
	return due, next, err
}

// First implements Book.
func (b storeBook) First(ctx context.Context, seq int64) (Delivery, bool, error) {
	d, err := b.deliveries.Next(ctx, seq)
	if fault.Is(err, fault.NotFound) {
		return Delivery{}, false, nil
	}
	to := Target{
		URL: d.Push.URL, Host: d.Push.Host, Token: d.Push.Token, Scheme: d.Push.Scheme,
		Credentials: d.Push.Credentials,
	}
	event := api.Event{Seq: d.Event.Seq, Type: api.EventType(d.Event.Type), Data: d.Event.Data}
	return Delivery{
		Push: d.Push.Seq, Run: d.Push.Run, To: to, Event: event, At: d.Event.At, Tries: d.Tries,
		Webhook: d.Webhook, Failures: d.Failures, Of: Subject{d.Unit, d.Root, d.Team, d.MadeBy},
	}, err == nil, err
}

// Note implements Book.
func (b storeBook) Note(ctx context.Context, d Delivery, r Result) error {
	return b.deliveries.Note(ctx, store.Try{
		Push: d.Push, Event: d.Event.Seq, At: r.At, Status: r.Status, Delivered: r.Word == Delivered,
		Nothing: r.Word == Nothing, Next: r.Next, Reason: string(r.Word),
	})
}
