package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Webhook is a receiver that is told of the ends and the questions of runs.
type Webhook struct {
	Seq       int64 // given by the store: it grows, and is never given twice
	ID        string
	Team      string // whose runs it tells of; "" is access.DefaultTeam. Of one with a Run it is the run's
	MadeBy    string // the name of the token with which it was made; "" for none
	OnlyBy    string // it tells only of what was made with this token; "": of all that the team has
	Run       string // it tells of this run, and of what the runs below it ask; "": of all
	URL       string
	Host      string   // of the URL
	Events    []string // the types that it tells of, as HookedAs has them
	CreatedAt time.Time

	// What became of its deliveries. Add doesn't write it.
	Waiting, Delivered, Lost int64
	NextAt                   time.Time // the first of those that wait isn't tried before; zero: none waits
	Failures                 int       // tries since the last delivery
	FailingAt                time.Time // the first of these; zero: the last try was a delivery
	TriedAt                  time.Time // the last try; zero: there was none
	Status                   int       // of its answer; 0: there was none
	Outcome                  string    // what became of it
	GivenUpAt                time.Time // zero: it goes on
	Reason                   string    // why it was given up
}

func (w Webhook) owner() string { return teamOf(w.Team) }

// The bounds of webhooks.
const (
	MaxWebhooks       = 20 // of a team, beside those of one run, of which there are at most MaxPushes
	maxWebhookWaiting = 2000
	maxWebhookFailing = 72 * time.Hour
	// calmFrom is after how many failures in a row what else waits for a receiver isn't tried before that which
	// failed last.
	calmFrom     = 8
	reasonOfGone = "gone"
)

// HookedAs returns the type of the event that webhooks tell of an event of a run, such as "run.failed" or
// "question.asked"; "": they tell nothing.
func HookedAs(e Event) string {
	var data struct{ State string }
	if e.Type != "end" && e.Type != "question" || json.Unmarshal(e.Data, &data) != nil || data.State == "" {
		return ""
	}
	switch {
	case e.Type == "end":
		return "run." + data.State
	case data.State == "open":
		return "question.asked"
	}
	return "question." + data.State
}

// Webhooks keeps them.
type Webhooks struct{ core *core }

// Add stores a new webhook. From then on its deliveries are stored with the events that it tells of. The error is a
// TooLarge fault where there are too many, and NotFound or Conflict for a Run that isn't there or has ended.
func (s *Webhooks) Add(ctx context.Context, w Webhook) (stored Webhook, err error) {
	events, err := json.Marshal(w.Events)
	if err != nil {
		return Webhook{}, err
	}
	err = s.core.change(ctx, "add webhook", func(ctx context.Context, tx *transaction) error {
		run, team, err := w.place(ctx, tx)
		if err != nil {
			return err
		}
		err = tx.exec(ctx, `INSERT INTO webhooks (id, team, made_by, only_by, run, url, host, events, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			w.ID, team, w.MadeBy, w.OnlyBy, run, w.URL, w.Host, string(events), nanos(w.CreatedAt))
		if err != nil {
			return err
		}
		if err := leavesRoom(ctx, tx, run, team); err != nil {
			return err
		}
		stored, err = find(ctx, tx, scanWebhook, UnknownWebhook(), selectWebhook+" WHERE webhooks.id = ?", w.ID)
		return err
	})
	return stored, err
}

// place returns the run of a new webhook, nil for none, and to which team it belongs.
func (w Webhook) place(ctx context.Context, tx *transaction) (run *int64, team string, err error) {
	if w.Run == "" {
		return nil, w.owner(), nil
	}
	var seq int64
	if seq, err = seqOf(ctx, tx, w.Run); err != nil {
		return nil, "", err
	}
	var outcome string
	err = tx.QueryRowContext(ctx, "SELECT team, outcome FROM runs WHERE seq = ?", seq).Scan(&team, &outcome)
	if err == nil && outcome != "" {
		err = fault.New(fault.Conflict, "the run has ended").WithHint("GET /v1/runs/{id} has what came of it")
	}
	return &seq, team, err
}

// leavesRoom returns a TooLarge fault if there are too many webhooks, with the new one.
func leavesRoom(ctx context.Context, tx *transaction, run *int64, team string) error {
	var count int
	of, whose, most := "SELECT count(*) FROM webhooks WHERE team = ? AND run IS NULL", any(team), MaxWebhooks
	if run != nil {
		of, whose, most = "SELECT count(*) FROM webhooks WHERE run = ?", any(*run), MaxPushes
	}
	err := tx.QueryRowContext(ctx, of, whose).Scan(&count)
	switch {
	case err != nil || count <= most:
		return err
	case run != nil:
		return fault.New(fault.TooLarge, "the run has %d webhooks already", most).WithHint("remove one")
	}
	return fault.New(fault.TooLarge, "the team has %d webhooks already", most).
		WithHint("remove one that nobody needs: `aod webhook ls` lists them")
}

// UnknownWebhook is the NotFound fault of a webhook that there isn't.
func UnknownWebhook() error {
	return fault.New(fault.NotFound, "there is no webhook of this id").WithHint("`aod webhook ls` lists them")
}

// Get returns a webhook, or a NotFound fault.
func (s *Webhooks) Get(ctx context.Context, id string) (Webhook, error) {
	w, err := find(ctx, s.core.readers, scanWebhook, UnknownWebhook(), selectWebhook+" WHERE webhooks.id = ?", id)
	return w, s.core.explain(ctx, "read webhook", err)
}

// List lists webhooks by who owns them, the newest first: before is of Behind, or 0 to begin. The limit is
// at most 1000; 0 is 1000.
func (s *Webhooks) List(ctx context.Context, owned Owned, before int64, limit int) ([]Webhook, error) {
	before, err := s.core.seal.begin(inWebhooks, before)
	if err != nil {
		return nil, err
	}
	of := owned.narrowed("webhooks", statement{selectWebhook + " WHERE webhooks.seq < ?", []any{below(before)}}).
		then(" ORDER BY webhooks.seq DESC LIMIT ?", atMost(limit))
	return list(ctx, s.core, "list webhooks", scanWebhook, of.text, of.args...)
}

// Behind returns where the page begins that goes on behind a row. It tells nothing of how many rows there are.
func (s *Webhooks) Behind(row Webhook) int64 { return s.core.seal.number(inWebhooks, row.Seq) }

// Delete removes a webhook with its deliveries. One that isn't there is a NotFound fault.
func (s *Webhooks) Delete(ctx context.Context, id string) error {
	return s.core.change(ctx, "delete webhook", func(ctx context.Context, tx *transaction) error {
		return tx.change(ctx, UnknownWebhook(), "DELETE FROM webhooks WHERE id = ?", id)
	})
}

const selectWebhook = `SELECT webhooks.seq, webhooks.id, webhooks.team, webhooks.made_by, only_by,
	coalesce((SELECT id FROM runs WHERE seq = webhooks.run), ''), webhooks.url, webhooks.host, webhooks.events,
	webhooks.created_at,
	(SELECT coalesce(sum(waiting), 0) FROM pushes WHERE webhook = webhooks.seq AND waiting > 0),
	delivered, lost,
	(SELECT coalesce(min(next_at), 0) FROM pushes WHERE webhook = webhooks.seq AND waiting > 0),
	failures, failing_at, webhooks.tried_at, webhooks.status, webhooks.outcome, webhooks.given_up_at, webhooks.reason
	FROM webhooks`

func scanWebhook(row scanner, w *Webhook) error {
	var events []byte
	err := row.Scan(&w.Seq, &w.ID, &w.Team, &w.MadeBy, &w.OnlyBy, &w.Run, &w.URL, &w.Host, &events,
		stamp{&w.CreatedAt}, &w.Waiting, &w.Delivered, &w.Lost, stamp{&w.NextAt}, &w.Failures, stamp{&w.FailingAt},
		stamp{&w.TriedAt}, &w.Status, &w.Outcome, stamp{&w.GivenUpAt}, &w.Reason)
	if err != nil {
		return err
	}
	return json.Unmarshal(events, &w.Events)
}

// hooked selects the webhooks w that tell of an event of a type, ?2, of the run r: ends of those that nobody called,
// questions of all.
const hooked = `w.given_up_at = 0 AND w.team = r.team AND (w.only_by = '' OR w.only_by = r.made_by)
	AND EXISTS (SELECT 1 FROM json_each(w.events) WHERE value = ?2)
	AND (w.run = r.seq OR w.run IS NULL AND (r.parent = '' OR ?2 LIKE 'question.%')
		OR ?2 LIKE 'question.%' AND w.run = (SELECT seq FROM runs WHERE id = r.root))`

// addHooked stores the deliveries of the event that was added to a run last, and reports whether there are any. What a
// webhook tells of a run is a push of that, whose id no client can give.
func addHooked(ctx context.Context, tx *transaction, run int64, e Event) (added bool, err error) {
	as := HookedAs(e)
	if as == "" {
		return false, nil
	}
	const push = `INSERT INTO pushes (run, id, url, host, token, scheme, credentials, created_at, webhook)
		SELECT r.seq, ' ' || w.id, '', w.host, '', '', '', ?3, w.seq FROM webhooks w, runs r WHERE r.seq = ?1 AND ` +
		hooked + ` ON CONFLICT (run, id) DO NOTHING`
	if err := tx.exec(ctx, push, run, as, nanos(e.At)); err != nil {
		return false, err
	}
	const add = `INSERT INTO deliveries (push, event, at)
		SELECT p.seq, (SELECT max(seq) FROM events WHERE run = ?1), ?3
		FROM pushes p JOIN webhooks w ON w.seq = p.webhook JOIN runs r ON r.seq = p.run
		WHERE p.run = ?1 AND p.given_up_at = 0 AND ` + hooked
	n, err := tx.rows(ctx, add, run, as, nanos(e.At))
	if err != nil || n == 0 {
		return false, err
	}
	const crowded = `SELECT coalesce(max(p.webhook), 0) FROM pushes p WHERE p.run = ?1 AND p.waiting > 0 AND
		(SELECT sum(waiting) FROM pushes WHERE webhook = p.webhook AND waiting > 0) > ?2`
	for {
		var webhook int64
		err := tx.QueryRowContext(ctx, crowded, run, maxWebhookWaiting).Scan(&webhook)
		if err != nil || webhook == 0 {
			return true, err
		}
		if err := giveUpWebhook(ctx, tx, webhook, e.At, reasonOfBacklog); err != nil {
			return true, err
		}
	}
}

// giveUpWebhook ends a webhook: what waits is lost.
func giveUpWebhook(ctx context.Context, tx *transaction, webhook int64, at time.Time, reason string) error {
	if err := tx.exec(ctx, `UPDATE webhooks SET given_up_at = ?, reason = ?, lost = lost +
		(SELECT coalesce(sum(waiting), 0) FROM pushes WHERE webhook = ?3 AND waiting > 0) WHERE seq = ?3`,
		nanos(at), reason, webhook); err != nil {
		return err
	}
	const ended = `UPDATE deliveries SET ended_at = ? WHERE ended_at = 0 AND push IN
		(SELECT seq FROM pushes WHERE webhook = ? AND waiting > 0)`
	return tx.exec(ctx, ended, nanos(at), webhook)
}

// noteHooked stores what a try was for the webhook of its push, if it has one.
func noteHooked(ctx context.Context, tx *transaction, t Try) error {
	var webhook int64
	err := tx.QueryRowContext(ctx, "SELECT coalesce(webhook, 0) FROM pushes WHERE seq = ?", t.Push).Scan(&webhook)
	switch {
	case err != nil || webhook == 0:
		return err
	case t.Delivered:
		return hookDelivered(ctx, tx, webhook, t)
	}
	return hookFailed(ctx, tx, webhook, t)
}

// hookDelivered has what waits for a receiver that is there again be tried at once.
func hookDelivered(ctx context.Context, tx *transaction, webhook int64, t Try) error {
	var failed int
	err := tx.QueryRowContext(ctx, "SELECT failures FROM webhooks WHERE seq = ?", webhook).Scan(&failed)
	if err == nil && failed >= calmFrom {
		err = tx.exec(ctx, "UPDATE pushes SET next_at = ? WHERE webhook = ? AND waiting > 0", nanos(t.At), webhook)
	}
	if err != nil {
		return err
	}
	return tx.exec(ctx, `UPDATE webhooks SET delivered = delivered + 1, failures = 0, failing_at = 0, tried_at = ?,
		status = ?, outcome = 'delivered' WHERE seq = ?`, nanos(t.At), t.Status, webhook)
}

// hookFailed counts a failure, and gives a webhook up that has had nothing else for too long.
func hookFailed(ctx context.Context, tx *transaction, webhook int64, t Try) error {
	var failures int
	var since time.Time
	err := tx.QueryRowContext(ctx, `UPDATE webhooks SET failures = failures + 1,
		failing_at = iif(failing_at = 0, ?1, failing_at), tried_at = ?1, status = ?2, outcome = ?3 WHERE seq = ?4
		RETURNING failures, failing_at`, nanos(t.At), t.Status, t.Reason, webhook).Scan(&failures, stamp{&since})
	switch {
	case err != nil:
		return err
	case t.Reason == reasonOfGone || t.At.Sub(since) >= maxWebhookFailing:
		return giveUpWebhook(ctx, tx, webhook, t.At, t.Reason)
	case failures < calmFrom, t.Next.IsZero():
		return nil
	}
	return tx.exec(ctx, "UPDATE pushes SET next_at = max(next_at, ?) WHERE webhook = ? AND waiting > 0",
		nanos(t.Next), webhook)
}
