package store

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/internal/access"
)

// Audited is that somebody did something, or was refused it. It never holds what was given or told.
type Audited struct {
	Seq                int64 // given by the store: it grows
	At                 time.Time
	Team               string // to which the object belongs, or whoever was refused; "" is access.DefaultTeam
	Identity           string // see access.Identity
	Address            string // from which it was asked for; "": not over a network
	Verb, Noun, Object string // the object by its id or name; "" of several
	Detail             string // such as the reason of a cancellation
	Result             string // Done, or the status with which it was refused
	Count              int64  // of refusals that are alike, within a minute; else 1
	Trace              string // the id of the request's trace; "": it has none
}

// Done is the Audited.Result of what was done.
const Done = "done"

// maxDetail bounds Audited.Detail and Object, in bytes.
const maxDetail = 256

// did completes what the client of ctx did. ok is false for what the server does by itself: its log has that.
func (a Audited) did(ctx context.Context) (_ Audited, ok bool) {
	if a.Identity, ok = access.Identity(ctx); !ok {
		return a, false
	}
	origin := access.OriginOf(ctx)
	a.At, a.Address, a.Trace, a.Result, a.Count = time.Now().UTC(), origin.Address, origin.Trace, Done, 1
	return a, true
}

// auditKey is the key of a context's note.
type auditKey struct{}

// note is a row that waits for the change that it is about.
type note struct {
	mu  sync.Mutex
	row *Audited // nil: it is stored
}

// Audit returns a context in which the first change that is stored has a row of the audit in its transaction: what the
// client of ctx did. What the server does by itself has none, and what belongs to something that is noted already.
func Audit(ctx context.Context, did Audited) context.Context {
	row, ok := did.did(ctx)
	if _, part := ctx.Value(auditKey{}).(*note); part || !ok {
		return ctx
	}
	return context.WithValue(ctx, auditKey{}, &note{row: &row})
}

// noted returns the change with the note of ctx, and what is called when that is stored.
func noted(ctx context.Context, change change) (_ change, stored func()) {
	n, _ := ctx.Value(auditKey{}).(*note)
	if n == nil {
		return change, func() {}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	row := n.row
	if row == nil {
		return change, func() {}
	}
	return func(ctx context.Context, tx *transaction) error {
			tx.unchanged = false // a transaction may have several changes
			if err := change(ctx, tx); err != nil || tx.unchanged {
				return err
			}
			return addAudited(ctx, tx, *row)
		}, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.row = nil
		}
}

// Audits keeps who did what. Rows are added, and removed for their age alone.
type Audits struct{ core *core }

// Did stores what the client of ctx did beside the database.
func (s *Audits) Did(ctx context.Context, did Audited) error {
	row, ok := did.did(ctx)
	if !ok {
		return nil
	}
	return s.Add(ctx, row)
}

// Add stores rows, all or none.
func (s *Audits) Add(ctx context.Context, rows ...Audited) error {
	return s.core.change(ctx, "store audit", func(ctx context.Context, tx *transaction) error {
		for _, row := range rows {
			if err := addAudited(ctx, tx, row); err != nil {
				return err
			}
		}
		return nil
	})
}

func addAudited(ctx context.Context, tx *transaction, a Audited) error {
	return tx.exec(ctx, `INSERT INTO audit (at, team, identity, address, verb, noun, object, detail, result, count,
		trace) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		nanos(a.At), teamOf(a.Team), a.Identity, a.Address, a.Verb, a.Noun, bounded(a.Object), bounded(a.Detail),
		a.Result, a.Count, a.Trace)
}

func bounded(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return text[:maxDetail]
}

// AuditFilter selects rows of the audit.
type AuditFilter struct {
	Identity string    // "": of all
	Object   string    // "": any
	Since    time.Time // inclusive; zero: open
	Owned    Owned     // whose objects; its By is no matter
	Before   int64     // of Behind: only those behind that row; 0: from the newest on
	Limit    int       // at most 1000; 0 is 1000
}

// List lists rows, the newest first.
func (s *Audits) List(ctx context.Context, f AuditFilter) ([]Audited, error) {
	before, err := s.core.seal.begin(inAudit, f.Before)
	if err != nil {
		return nil, err
	}
	var c condition
	c.add("seq < ?", below(before))
	if f.Identity != "" {
		c.add("identity = ?", f.Identity)
	}
	if f.Object != "" {
		c.add("object = ? AND object <> ''", f.Object)
	}
	if !f.Since.IsZero() {
		c.add("seq >= (SELECT coalesce(min(seq), ?) FROM audit WHERE at >= ?)", int64(math.MaxInt64), nanos(f.Since))
	}
	Owned{Teams: f.Owned.Teams}.narrow(&c, "audit", f.Identity == "" && f.Object == "")
	of := c.of("SELECT seq, at, team, identity, address, verb, noun, object, detail, result, count, trace FROM audit").
		then(" ORDER BY seq DESC LIMIT ?", atMost(f.Limit))
	return list(ctx, s.core, "read audit", scanAudited, of.text, of.args...)
}

// Behind returns where the page begins that goes on behind a row. It tells nothing of how many rows there are.
func (s *Audits) Behind(row Audited) int64 { return s.core.seal.number(inAudit, row.Seq) }

func scanAudited(row scanner, a *Audited) error {
	return row.Scan(&a.Seq, stamp{&a.At}, &a.Team, &a.Identity, &a.Address, &a.Verb, &a.Noun, &a.Object, &a.Detail,
		&a.Result, &a.Count, &a.Trace)
}

// Trim removes rows from before a time.
func (s *Audits) Trim(ctx context.Context, before time.Time) error {
	for removed := int64(trimmedAtOnce); removed == trimmedAtOnce; {
		err := s.core.change(ctx, "trim audit", func(ctx context.Context, tx *transaction) (err error) {
			removed, err = tx.rows(ctx, "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at < ? LIMIT ?)",
				nanos(before), trimmedAtOnce)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
