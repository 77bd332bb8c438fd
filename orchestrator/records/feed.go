package records

import (
	"context"
	"iter"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/orchestrator/runlog"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Feed tells what happens in runs, as it is stored. It is safe for concurrent use.
type Feed struct {
	runs  *Reader
	store *store.Store
	pages eventPages
}

// NewFeed returns the Feed of what a store has of runs.
func NewFeed(runs *Reader, st *store.Store) *Feed { return &Feed{runs: runs, store: st} }

// eventPage is how many events are read at once.
const eventPage = 200

// Events yields the events of a run after the one with the number after, until the last
// event of the run, which comes in any case. It ends early with an error, or when ctx ends. All who
// read a run at the same place share its events: they must not be changed.
func (f *Feed) Events(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return f.events(ctx, id, after, true)
}

// Last returns the last event of a run.
func (f *Feed) Last(ctx context.Context, id string) (api.Event, error) {
	if err := f.runs.Seen(ctx, id); err != nil {
		return api.Event{}, err
	}
	last, err := f.store.Events.Last(ctx, id)
	return EventOf(last), err
}

// Next returns a channel that is closed with the next event or log line of a run. more is false when none can come.
func (f *Feed) Next(id string) (news <-chan struct{}, more bool) { return f.runs.opts.Live(id).Next() }

// Past yields the events that a run has had after the one with the number after.
func (f *Feed) Past(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return f.events(ctx, id, after, false)
}

// events is Past, and with follow it waits for more until the last event of the run.
func (f *Feed) events(ctx context.Context, id string, after int64, follow bool) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if _, err := f.runs.Get(ctx, id); err != nil {
			yield(api.Event{}, err)
			return
		}
		for {
			news, live := f.runs.opts.Live(id).Next() // before the look, so that nothing comes between
			last, over, err := f.passPage(ctx, eventPlace{id, after}, yield)
			switch {
			case over:
				return
			case err != nil:
				yield(api.Event{}, err)
				return
			case last > after:
				after = last
				continue
			case !follow:
				return
			case !live:
				f.tellEnd(ctx, id, yield)
				return
			}
			select {
			case <-news:
			case <-ctx.Done():
				yield(api.Event{}, context.Cause(ctx))
				return
			}
		}
	}
}

// passPage yields the events of one page, and returns the number of the last one. over says that
// nobody wants more, or that there is no more.
func (f *Feed) passPage(
	ctx context.Context, at eventPlace, yield func(api.Event, error) bool,
) (last int64, over bool, err error) {
	page, leave := f.pages.take(at, func() ([]api.Event, func(), error) { return f.readPage(ctx, at) })
	defer leave()
	last = at.after
	for _, e := range page.events {
		last = e.Seq
		if !yield(e, nil) || e.Type == api.EventEnd {
			return last, true, nil
		}
	}
	return last, false, page.err
}

// readPage reads a page of events, which counts for whoever reads it first until free is called.
func (f *Feed) readPage(ctx context.Context, at eventPlace) (events []api.Event, free func(), err error) {
	rows, err := f.store.Events.List(ctx, at.run, at.after, eventPage)
	if err != nil {
		return nil, nil, err
	}
	var size int64
	for _, row := range rows {
		size += int64(len(row.Data))
		events = append(events, EventOf(row))
	}
	if free, err = bytegate.Hold(ctx, size); err != nil {
		return nil, nil, err
	}
	return events, free, nil
}

// tellEnd yields the end of a run once more, to somebody who says to have seen it: whoever follows
// a run is told at its end that nothing more comes.
func (f *Feed) tellEnd(ctx context.Context, id string, yield func(api.Event, error) bool) {
	last, err := f.store.Events.Last(ctx, id)
	if err != nil || last.Type == string(api.EventEnd) {
		yield(EventOf(last), err)
	}
}

// EventOf is a stored event as clients see it.
func EventOf(e store.Event) api.Event {
	return api.Event{Seq: e.Seq, Type: api.EventType(e.Type), Data: e.Data}
}

// Log yields log entries of a run, in their order.
func (f *Feed) Log(ctx context.Context, id string, wanted api.LogFilter) iter.Seq2[api.LogEntry, error] {
	return func(yield func(api.LogEntry, error) bool) {
		if _, err := f.runs.Get(ctx, id); err != nil {
			yield(api.LogEntry{}, err)
			return
		}
		t := runlog.NewTail(f.runs.dir(id), wanted)
		defer t.Close()
		for {
			news, live := f.runs.opts.Live(id).Next()
			if more, err := t.Drain(yield); !more || err != nil {
				if err != nil {
					yield(api.LogEntry{}, err)
				}
				return
			}
			if !wanted.Follow || !live {
				return
			}
			select {
			case <-news:
			case <-ctx.Done():
				yield(api.LogEntry{}, context.Cause(ctx))
				return
			}
		}
	}
}

// shownStates are the states that a record can show.
var shownStates = []string{
	string(api.Idle), string(api.Starting), string(api.Running), string(api.Completed), string(api.Failed),
	string(api.Timeout), string(api.Cancelled),
}

// Changed returns a page of runs that nobody called, by their last transition, the latest
// first: those that the client of ctx may know of. The order is that in which transitions were stored; see
// api.ChangedPage.
func (f *Feed) Changed(ctx context.Context, filter api.ChangedFilter) (api.ChangedPage, error) {
	wanted := store.ChangedFilter{
		Units: filter.Units, Context: filter.Context, Owned: store.OwnedFor(ctx), Known: shownStates,
		Since: filter.Since, Cursor: filter.Cursor, Limit: filter.Limit,
	}
	if filter.Unit != "" {
		wanted.Units = append([]string{filter.Unit}, filter.Units...)
	}
	for _, state := range filter.States {
		wanted.States = append(wanted.States, string(state))
	}
	rows, err := f.store.Runs.Changed(ctx, wanted)
	if err != nil {
		return api.ChangedPage{}, err
	}
	page := api.ChangedPage{Runs: make([]api.Record, 0, len(rows.Runs)), Next: rows.Next, Total: int(rows.Total)}
	for _, row := range rows.Runs {
		page.Runs = append(page.Runs, Show(row))
	}
	return page, nil
}
