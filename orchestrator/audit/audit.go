// Package audit keeps who did what at a server, and who was refused it.
//
// What is done has its row in the transaction of the change: see store.Audit. Log.Refused counts refusals, of which
// those that are alike are one row a minute. Commands that change the data directory without the server leave a Note
// (notes.go), which the server takes in.
//
// It must not know requests, nor what was given or told.
//
// Its Go API may change with every release: see docs/stability.md.
package audit

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

const (
	minute = time.Minute
	// maxRefusals is how many kinds of refusals are told apart within a minute; the others are one.
	maxRefusals = 1000
)

// Options are what a Log works with.
type Options struct {
	Rows   *store.Audits
	Home   string        // where commands leave their notes
	Age    time.Duration // that a row may reach
	Logger *slog.Logger
}

// Log is the audit of a server. It is safe for concurrent use.
type Log struct {
	opts Options

	mu      sync.Mutex
	refused map[Refusal]int64
	taking  sync.Mutex // notes are taken in once
}

// Refusal is what refusals have in common that are one row.
type Refusal struct {
	Team               string // of the object; "": that of whoever was refused
	Verb, Noun, Object string
	Result             string // the status with which it was refused

	identity, address string
}

// Forbidden is the Refusal.Result of what somebody may not do.
const Forbidden = "403"

// New returns the Log of a server.
func New(opts Options) *Log { return &Log{opts: opts, refused: map[Refusal]int64{}} }

// Did stores what the client of ctx has done beside the database.
func (l *Log) Did(ctx context.Context, verb, noun, object string) error {
	return l.opts.Rows.Did(ctx, store.Audited{
		Team: access.OwnerOf(ctx).Team, Verb: verb, Noun: noun, Object: object,
	})
}

// Refused notes that the client of ctx was refused something.
func (l *Log) Refused(ctx context.Context, of Refusal) {
	identity, asked := access.Identity(ctx)
	if !asked {
		return
	}
	of.identity, of.address = identity, access.OriginOf(ctx).Address
	of.Team = cmp.Or(of.Team, access.OwnerOf(ctx).Team)
	l.count(of, 1)
}

func (l *Log) count(of Refusal, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.refused[of]; !known && len(l.refused) >= maxRefusals {
		of = Refusal{Noun: of.Noun, Result: of.Result, identity: "others"}
	}
	l.refused[of] += n
}

// Run stores what was refused, takes in notes and removes what is too old, until ctx ends.
func (l *Log) Run(ctx context.Context) {
	for {
		err := pause.For(ctx, minute)
		l.tell("store", l.store(context.WithoutCancel(ctx)))
		if err != nil {
			return
		}
		l.tell("trim", l.opts.Rows.Trim(ctx, time.Now().Add(-l.opts.Age)))
	}
}

func (l *Log) tell(what string, err error) {
	if err != nil {
		l.opts.Logger.Warn("audit is behind", "step", what, fault.LogAttr(err))
	}
}

// store stores what has only been counted or noted yet.
func (l *Log) store(ctx context.Context) error {
	if err := l.takeNotes(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	refused := l.refused
	l.refused = map[Refusal]int64{}
	l.mu.Unlock()
	var rows []store.Audited
	for of, count := range refused {
		rows = append(rows, store.Audited{
			At: time.Now().UTC(), Team: of.Team, Identity: of.identity, Address: of.address, Verb: of.Verb,
			Noun: of.Noun, Object: of.Object, Result: of.Result, Count: count,
		})
	}
	if len(rows) == 0 {
		return nil
	}
	err := l.opts.Rows.Add(ctx, rows...)
	if err != nil {
		for of, count := range refused { // the next time stores them
			l.count(of, count)
		}
	}
	return err
}

// List lists the rows that the client of ctx may know of, the newest first.
func (l *Log) List(ctx context.Context, f api.AuditFilter) (api.AuditPage, error) {
	limit, err := api.PageLimit(f.Limit)
	if err != nil {
		return api.AuditPage{}, err
	}
	if err := l.store(ctx); err != nil {
		return api.AuditPage{}, err
	}
	rows, err := l.opts.Rows.List(ctx, store.AuditFilter{
		Identity: f.By, Object: f.Object, Since: f.Since, Owned: store.OwnedFor(ctx), Before: f.After, Limit: limit,
	})
	page := api.AuditPage{Entries: make([]api.AuditEntry, 0, len(rows))}
	for _, row := range rows {
		page.Entries = append(page.Entries, api.AuditEntry{
			At: row.At, Team: row.Team, Identity: row.Identity, Address: row.Address, Verb: row.Verb, Noun: row.Noun,
			Object: row.Object, Detail: row.Detail, Result: row.Result, Count: row.Count, Trace: row.Trace,
		})
	}
	if len(rows) == limit {
		page.Next = new(l.opts.Rows.Behind(rows[limit-1]))
	}
	return page, err
}
