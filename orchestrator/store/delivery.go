package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// pushed are the types of the events that pushes tell of.
var pushed = []string{"state", "message", "artifact", "question", "end"}

// Delivery is an event that a push has to tell of.
type Delivery struct {
	Push  Push // without what became of its deliveries
	Event Event
	Tries int // that were made

	Webhook  string // the id of the webhook whose push it is; "": a client of the run named the receiver
	Failures int    // of that one's tries in a row
	Unit     string // of the run, as its Root, Team and MadeBy are
	Root     string
	Team     string
	MadeBy   string
}

// addDelivery stores the deliveries of the event that was added to a run last. Only the writer may
// call it. A push with too many that wait is given up as a whole: those who come after a gap would
// be out of order.
func addDelivery(ctx context.Context, tx *transaction, run int64, e Event) error {
	if !slices.Contains(pushed, e.Type) {
		return nil
	}
	hooked, err := addHooked(ctx, tx, run, e)
	if err != nil {
		return err
	}
	const add = `INSERT INTO deliveries (push, event, at)
		SELECT seq, (SELECT max(seq) FROM events WHERE run = ?1), ?2 FROM pushes WHERE run = ?1 AND given_up_at = 0
			AND webhook IS NULL`
	if n, err := tx.rows(ctx, add, run, nanos(e.At)); err != nil || n == 0 && !hooked {
		return err
	}
	tx.pushed = true
	const tooMany = `SELECT coalesce(max(seq), 0) FROM pushes WHERE run = ? AND given_up_at = 0 AND
		(waiting > ? OR waiting > 0 AND (SELECT push_backlog FROM totals) > ?)`
	for {
		var push int64
		if err := tx.QueryRowContext(ctx, tooMany, run, maxPushWaiting, maxPushBacklog).Scan(&push); err != nil ||
			push == 0 {
			return err
		}
		if err := giveUp(ctx, tx, push, e.At, reasonOfBacklog); err != nil {
			return err
		}
	}
}

// giveUp ends a push: what waits is lost.
func giveUp(ctx context.Context, tx *transaction, push int64, at time.Time, reason string) error {
	if err := tx.exec(ctx, `UPDATE webhooks SET lost = lost + (SELECT waiting FROM pushes WHERE seq = ?1)
		WHERE seq = (SELECT webhook FROM pushes WHERE seq = ?1)`, push); err != nil {
		return err
	}
	if err := tx.exec(ctx, "UPDATE pushes SET given_up_at = ?, reason = ? WHERE seq = ?", nanos(at), reason,
		push); err != nil {
		return err
	}
	return tx.exec(ctx, "UPDATE deliveries SET ended_at = ? WHERE push = ? AND ended_at = 0", nanos(at), push)
}

// Deliveries keeps what pushes have to tell.
type Deliveries struct{ core *core }

// News returns a channel that has something when there may be new deliveries.
func (s *Deliveries) News() <-chan struct{} {
	if s.core.writer == nil {
		return nil
	}
	return s.core.writer.pushed
}

// DuePush is a push with a delivery that may be tried.
type DuePush struct {
	Seq  int64
	Host string
}

// Besides are pushes that aren't looked for.
type Besides struct {
	Pushes   []int64
	Hosts    []string
	Named    bool // those of receivers that clients of runs named
	Webhooks bool // those of webhooks
}

// maxPushDelay is longer than any wait between two tries. Who has to wait longer waits for a clock
// that was set back since.
const maxPushDelay = time.Hour

// Due returns at most limit pushes that have a delivery to try at a time, those that have
// waited longest first, and when the next one after that has; zero: none has.
func (s *Deliveries) Due(
	ctx context.Context, at time.Time, besides Besides, limit int,
) (due []DuePush, next time.Time, err error) {
	pushes, err := json.Marshal(append([]int64{}, besides.Pushes...))
	if err != nil {
		return nil, next, err
	}
	hosts, err := json.Marshal(append([]string{}, besides.Hosts...))
	if err != nil {
		return nil, next, err
	}
	due, err = query(ctx, s.core.readers, scanDuePush, selectDuePushes, nanos(at), nanos(at.Add(maxPushDelay)),
		string(pushes), string(hosts), atMost(limit), besides.Named, besides.Webhooks,
		calmFrom)
	if err != nil {
		return nil, next, s.core.explain(ctx, "look for pushes", err)
	}
	var first int64
	err = s.core.readers.QueryRowContext(ctx, selectNextPush, nanos(at)).Scan(&first)
	return due, fromNanos(first), s.core.explain(ctx, "look for pushes", err)
}

// Of a webhook that failed so often, one push at a time is due: its receiver takes no places that others need.
const (
	selectDuePushes = `SELECT seq, host FROM pushes WHERE waiting > 0 AND (next_at <= ?1 OR next_at > ?2)
		AND NOT EXISTS (SELECT 1 FROM webhooks JOIN pushes AS first ON first.webhook = webhooks.seq
			WHERE webhooks.seq = pushes.webhook AND failures >= ?8 AND first.waiting > 0 AND first.next_at <= ?1
				AND first.seq < pushes.seq)
		AND seq NOT IN (SELECT value FROM json_each(?3)) AND host NOT IN (SELECT value FROM json_each(?4))
		AND NOT iif(webhook IS NULL, ?6, ?7) ORDER BY next_at LIMIT ?5`
	selectNextPush = "SELECT coalesce(min(next_at), 0) FROM pushes WHERE waiting > 0 AND next_at > ?"
)

func scanDuePush(row scanner, d *DuePush) error { return row.Scan(&d.Seq, &d.Host) }

// Next returns the first delivery of a push that waits, or a NotFound fault if none does.
func (s *Deliveries) Next(ctx context.Context, push int64) (d Delivery, err error) {
	d, err = find(ctx, s.core.readers, scanDelivery, fault.New(fault.NotFound, "no delivery of the push waits"),
		selectNextDelivery, push)
	return d, s.core.explain(ctx, "read delivery", err)
}

func scanDelivery(row scanner, d *Delivery) error {
	p, e := &d.Push, &d.Event
	return row.Scan(&p.Seq, &p.Run, &p.ID, &p.URL, &p.Host, &p.Token, &p.Scheme, &p.Credentials, &e.Seq, stamp{&e.At},
		&e.Type, &e.Data, &d.Tries, &d.Webhook, &d.Failures, &d.Unit, &d.Root, &d.Team, &d.MadeBy)
}

const selectNextDelivery = `SELECT pushes.seq, runs.id, pushes.id, coalesce(webhooks.url, pushes.url), pushes.host,
	token, scheme, credentials, events.seq, events.at, events.type, events.data, tries, coalesce(webhooks.id, ''),
	coalesce(webhooks.failures, 0), runs.unit, runs.root, runs.team, runs.made_by
	FROM pushes LEFT JOIN webhooks ON webhooks.seq = pushes.webhook JOIN runs ON runs.seq = pushes.run
	JOIN deliveries ON deliveries.push = pushes.seq
		AND deliveries.ended_at = 0
	JOIN events ON events.run = pushes.run AND events.seq = deliveries.event
	WHERE pushes.seq = ? ORDER BY deliveries.event LIMIT 1`

// Try is what became of a delivery.
type Try struct {
	Push, Event int64 // by their Seq
	At          time.Time
	Status      int       // of the answer; 0: there was none
	Delivered   bool      // the receiver has taken it
	Nothing     bool      // nothing was to be told of the event
	Next        time.Time // else it isn't tried again before; zero: never
	Reason      string    // then this is why
}

// Note stores what became of the delivery of an event. One that doesn't wait any more stays as
// it is. Where the delivery is never tried again, the push is given up.
func (s *Deliveries) Note(ctx context.Context, t Try) error {
	err := s.core.write(ctx, func(ctx context.Context, tx *transaction) error {
		if t.Nothing {
			return noteNothing(ctx, tx, t)
		}
		ended := time.Time{}
		next := t.Next
		if t.Delivered {
			ended, next = t.At, t.At
		}
		n, err := tx.rows(ctx,
			"UPDATE deliveries SET tries = tries + 1, ended_at = ?, delivered = ? WHERE push = ? AND event = ? AND "+
				"ended_at = 0",
			nanos(ended), t.Delivered, t.Push, t.Event)
		if err != nil || n == 0 {
			return err
		}
		if err := tx.exec(ctx, "UPDATE pushes SET tried_at = ?, status = ?, next_at = ? WHERE seq = ?", nanos(t.At),
			t.Status, nanos(next), t.Push); err != nil {
			return err
		}
		if err := noteHooked(ctx, tx, t); err != nil || t.Delivered || !t.Next.IsZero() {
			return err
		}
		return giveUp(ctx, tx, t.Push, t.At, t.Reason)
	})
	if err != nil {
		err = fmt.Errorf("push %d: %w", t.Push, err)
	}
	return s.core.explain(ctx, "note delivery", err)
}

// noteNothing forgets the delivery of an event of which nothing is told.
func noteNothing(ctx context.Context, tx *transaction, t Try) error {
	if err := tx.exec(ctx, "DELETE FROM deliveries WHERE push = ? AND event = ? AND ended_at = 0", t.Push,
		t.Event); err != nil {
		return err
	}
	return tx.exec(ctx, "UPDATE pushes SET next_at = ? WHERE seq = ? AND waiting > 0", nanos(t.At), t.Push)
}
