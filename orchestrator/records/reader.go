// Package records reads what is kept of runs: as they stand, what happens in them, their files, the state of flows, and
// what changes (News). All protocols have it from here, and what a client may not know of isn't there.
//
// It must not know how runs are led: of a run that this process leads it has what is Live.
//
// Its Go API may change with every release: see docs/stability.md.
package records

import (
	"context"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/runlog"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Rows are the runs that are stored, on disk or in memory.
type Rows interface {
	Get(ctx context.Context, id string) (store.Run, error)
	List(ctx context.Context, f store.Filter) (store.Page, error)
	Tree(ctx context.Context, root string, most int) (tree []store.Run, all int64, err error)
}

// StepRows are the steps of flows that are stored likewise.
type StepRows interface {
	List(ctx context.Context, run string, after int64, limit int) ([]store.Step, error)
	Counts(ctx context.Context, run string) (store.StepCounts, error)
}

// Live is what others hear of a run that this process leads.
type Live struct {
	Outcome *pause.Value[api.Record] // set when it is stored
	Gone    chan struct{}            // closed when this process has nothing more to do with it
	News    pause.Notifier           // of events and log lines
}

// NewLive returns what is heard of a run before anything has happened.
func NewLive() *Live {
	return &Live{Outcome: pause.NewValue[api.Record](), Gone: make(chan struct{})}
}

// Next returns a channel that is closed with the run's next event or log line. more is false when none can come, as
// of a run that this process doesn't lead.
func (l *Live) Next() (news <-chan struct{}, more bool) {
	if l == nil {
		return nil, false
	}
	news = l.News.After()
	return news, !pause.Over(l.Gone) // the last news comes when it is gone
}

// Questions are the questions that runs ask.
type Questions interface {
	// Oldest returns the oldest open question of a run; nil: it has none.
	Oldest(ctx context.Context, run string) (*api.OpenQuestion, error)
	// AwaitOpened returns a channel that is closed when a run opens a question. leave must follow.
	AwaitOpened(run string) (opened <-chan struct{}, leave func())
}

// Options are what a Reader works with.
type Options struct {
	Rows      Rows
	Steps     StepRows
	Kinds     run.Kinds
	Runs      string                // where each run has its directory
	Live      func(id string) *Live // nil for a run that this process doesn't lead
	Questions Questions             // nil: none are stored
	// Waits tells where a run waits that is in a state and was made at a time, and for what; nil: it doesn't wait.
	Waits func(id, unit string, state api.State, since time.Time) *api.Waiting
}

// Reader reads runs as they stand. It is safe for concurrent use.
type Reader struct{ opts Options }

// NewReader returns a Reader.
func NewReader(opts Options) *Reader { return &Reader{opts} }

// Get returns a run as it stands, or a NotFound fault. One that the client of ctx may not know of
// isn't there: this is where all protocols have it from, and what they show of a run begins here.
func (r *Reader) Get(ctx context.Context, id string) (api.Record, error) {
	row, err := r.opts.Rows.Get(ctx, id)
	if err != nil {
		return api.Record{}, err
	}
	if !sees(ctx, row) {
		return api.Record{}, store.UnknownRun(id)
	}
	record := Show(row)
	if record.Outcome == "" && r.opts.Kinds.Conducts(record.Kind) {
		counts, err := FlowCounts(ctx, r.opts.Steps, id)
		if err != nil {
			return api.Record{}, err
		}
		record.Flow = &counts
	}
	record.Waiting = r.waitOf(record.ID, record.Unit, record.State, record.Outcome, record.CreatedAt)
	if record.Outcome == "" && r.opts.Questions != nil {
		record.Question, err = r.opts.Questions.Oldest(ctx, id)
	}
	return record, err
}

// waitOf tells why a run doesn't go on.
func (r *Reader) waitOf(id, unit string, state api.State, outcome api.Outcome, since time.Time) *api.Waiting {
	if outcome != "" {
		return nil
	}
	return r.opts.Waits(id, unit, state, since)
}

// Seen is for what needs no record: it returns the fault of an unknown run for one that the client
// of ctx may not know of.
func (r *Reader) Seen(ctx context.Context, id string) error {
	if access.ReachOf(ctx).All {
		return nil
	}
	_, err := r.Get(ctx, id)
	return err
}

// FilterOf is a client's filter, of the runs that the client may know of.
func FilterOf(ctx context.Context, f api.Filter) store.Filter {
	states := make([]string, len(f.States))
	for i, state := range f.States {
		states[i] = string(state)
	}
	return store.Filter{
		Owned: store.OwnedFor(ctx), MadeBy: f.By,
		Unit: f.Unit, Parent: f.Parent, Session: f.Session, Context: f.Context,
		Schedule: f.Schedule, States: states, Roots: f.Roots, Unfinished: f.Active, Asking: f.Waiting,
		Metadata: f.Metadata, Since: f.Since, Until: f.Until, Cursor: f.Cursor, Limit: f.Limit,
	}
}

// List returns a page of runs, newest first.
func (r *Reader) List(ctx context.Context, f api.Filter) (api.Page, error) {
	rows, err := r.opts.Rows.List(ctx, FilterOf(ctx, f))
	if err != nil {
		return api.Page{}, err
	}
	page := api.Page{Runs: make([]api.Summary, 0, len(rows.Runs))}
	for _, row := range rows.Runs {
		summary, err := Summary(row)
		if err != nil {
			return api.Page{}, err
		}
		summary.Waiting = r.waitOf(summary.ID, summary.Unit, summary.State, summary.Outcome, summary.CreatedAt)
		page.Runs = append(page.Runs, summary)
	}
	if rows.Next != "" {
		page.Next = &rows.Next
	}
	return page, nil
}

// Await returns a run when it has its outcome, or as it stands when ctx ends.
func (r *Reader) Await(ctx context.Context, id string) (api.Record, error) {
	if err := r.Seen(context.WithoutCancel(ctx), id); err != nil { // who doesn't wait gets an answer, too
		return api.Record{}, err
	}
	if live := r.opts.Live(id); live != nil && !live.Outcome.IsSet() {
		select {
		case <-live.Outcome.Done():
			return live.Outcome.Get(), nil
		case <-live.Gone:
		case <-ctx.Done():
		}
	}
	return r.Get(context.WithoutCancel(ctx), id)
}

// AwaitAsked is Await that returns as well when the run asks something.
func (r *Reader) AwaitAsked(ctx context.Context, id string) (api.Record, error) {
	if err := r.Seen(context.WithoutCancel(ctx), id); err != nil {
		return api.Record{}, err
	}
	for {
		if record, over, err := r.askedOrOver(ctx, id); over || err != nil {
			return record, err
		}
	}
}

// askedOrOver waits for the next question of a run, and reports whether it has one now, or an end, or nobody waits any
// more.
func (r *Reader) askedOrOver(ctx context.Context, id string) (record api.Record, over bool, err error) {
	opened, leave := r.opts.Questions.AwaitOpened(id) // before the look, so that nothing comes between
	defer leave()
	live := r.opts.Live(id)
	record, err = r.Get(ctx, id)
	if err != nil || live == nil || record.Outcome != "" || record.Question != nil {
		return record, true, err
	}
	select {
	case <-live.Outcome.Done():
		return live.Outcome.Get(), true, nil
	case <-opened:
		return record, false, nil
	case <-live.Gone:
	case <-ctx.Done():
	}
	record, err = r.Get(context.WithoutCancel(ctx), id)
	return record, true, err
}

// sees reports whether the client of ctx may know of a run.
func sees(ctx context.Context, row store.Run) bool {
	return access.Sees(ctx, access.Owner{Team: row.Team, By: row.MadeBy})
}

// LastWords returns what a run that failed wrote last, see runlog.LastWords.
func (r *Reader) LastWords(record api.Record) string {
	return runlog.LastWords(r.dir(record.ID), record)
}

// FilePath returns where an output file lies on this host.
func (r *Reader) FilePath(id, name string) string { return r.output(id) + "/" + name }

func (r *Reader) output(id string) string { return r.dir(id) + "/" + layout.Output }

func (r *Reader) dir(id string) string { return filepath.Join(r.opts.Runs, id) }
