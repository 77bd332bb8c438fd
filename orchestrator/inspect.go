package orchestrator

import (
	"context"
	"iter"
	"os"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/runlog"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// eventPage is how many events are read at once.
const eventPage = 200

// Get returns a run as it stands, or a NotFound fault. One that the client of ctx may not know of
// isn't there: this is where all protocols have it from, and what they show of a run begins here.
func (l *loop) Get(ctx context.Context, id string) (api.Record, error) {
	row, err := l.journal.Run(ctx, id)
	if err != nil {
		return api.Record{}, err
	}
	if !access.Sees(ctx, row.MadeBy) {
		return api.Record{}, store.UnknownRun(id)
	}
	record := shownOf(row)
	if record.Outcome == "" && l.kinds.Conducts(record.Kind) {
		counts, err := l.flowCounts(ctx, id)
		if err != nil {
			return api.Record{}, err
		}
		record.Flow = &counts
	}
	if record.Outcome == "" && l.durable {
		record.Question, err = l.openQuestionOf(ctx, id)
	}
	return record, err
}

// seen is for what needs no record: it returns the fault of an unknown run for one that the client
// of ctx may not know of.
func (l *loop) seen(ctx context.Context, id string) error {
	if access.OnlyOwn(ctx) == "" {
		return nil
	}
	_, err := l.Get(ctx, id)
	return err
}

// openQuestionOf returns what is told of the oldest open question of a run; nil: it has none.
func (l *loop) openQuestionOf(ctx context.Context, id string) (*api.OpenQuestion, error) {
	rows, err := l.store.OpenQuestions(ctx, id, time.Now(), 0, 1)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &api.OpenQuestion{ID: rows[0].ID, Kind: api.QuestionKind(rows[0].Kind), Until: orNil(rows[0].Until)}, nil
}

// List returns a page of runs, newest first.
func (s *Service) List(ctx context.Context, f api.Filter) (api.Page, error) {
	states := make([]string, len(f.States))
	for i, state := range f.States {
		states[i] = string(state)
	}
	rows, err := s.store.Runs(ctx, store.Filter{
		MadeBy: access.OnlyOwn(ctx), Unit: f.Unit, Parent: f.Parent, Session: f.Session, Context: f.Context,
		Schedule: f.Schedule, States: states, Unfinished: f.Active, Asking: f.Waiting, Metadata: f.Metadata,
		Since: f.Since, Until: f.Until, Cursor: f.Cursor, Limit: f.Limit,
	})
	if err != nil {
		return api.Page{}, err
	}
	page := api.Page{Runs: make([]api.Summary, 0, len(rows.Runs))}
	for _, row := range rows.Runs {
		summary, err := summaryOf(row)
		if err != nil {
			return api.Page{}, err
		}
		page.Runs = append(page.Runs, summary)
	}
	if rows.Next != "" {
		page.Next = &rows.Next
	}
	return page, nil
}

// Await returns a run when it has its outcome, or as it stands when ctx ends.
func (l *loop) Await(ctx context.Context, id string) (api.Record, error) {
	if err := l.seen(ctx, id); err != nil {
		return api.Record{}, err
	}
	if j := l.job(id); j != nil && !pause.Over(j.ended) {
		select {
		case <-j.ended:
			return *j.outcome, nil
		case <-j.gone:
		case <-ctx.Done():
		}
	}
	return l.Get(context.WithoutCancel(ctx), id)
}

// AwaitAsked is Await that returns as well when the run asks something.
func (l *loop) AwaitAsked(ctx context.Context, id string) (api.Record, error) {
	if err := l.seen(ctx, id); err != nil {
		return api.Record{}, err
	}
	for {
		j := l.job(id)
		if j == nil || pause.Over(j.ended) {
			return l.Get(ctx, id)
		}
		opened := j.opened.After() // before the look, so that nothing comes between
		record, err := l.Get(ctx, id)
		if err != nil || record.Outcome != "" || record.Question != nil {
			return record, err
		}
		select {
		case <-j.ended:
			return *j.outcome, nil
		case <-opened:
			continue
		case <-j.gone:
		case <-ctx.Done():
		}
		return l.Get(context.WithoutCancel(ctx), id)
	}
}

// Events yields the events of a run after the one with the number after, until the last
// event of the run, which comes in any case. It ends early with an error, or when ctx ends. All who
// read a run at the same place share its events: they must not be changed.
func (s *Service) Events(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return s.events(ctx, id, after, true)
}

// Past yields the events that a run has had after the one with the number after.
func (s *Service) Past(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return s.events(ctx, id, after, false)
}

// events is Past, and with follow it waits for more until the last event of the run.
func (s *Service) events(ctx context.Context, id string, after int64, follow bool) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if _, err := s.Get(ctx, id); err != nil {
			yield(api.Event{}, err)
			return
		}
		for {
			news, live := s.newsOf(id) // before the look, so that nothing comes between
			last, over, err := s.passPage(ctx, eventPlace{id, after}, yield)
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
				s.tellEnd(ctx, id, yield)
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
func (s *Service) passPage(
	ctx context.Context, at eventPlace, yield func(api.Event, error) bool,
) (last int64, over bool, err error) {
	page, leave := s.pages.take(at, func() ([]api.Event, func(), error) { return s.readPage(ctx, at) })
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
func (s *Service) readPage(ctx context.Context, at eventPlace) (events []api.Event, free func(), err error) {
	rows, err := s.store.Events(ctx, at.run, at.after, eventPage)
	if err != nil {
		return nil, nil, err
	}
	var size int64
	for _, row := range rows {
		size += int64(len(row.Data))
		events = append(events, eventOf(row))
	}
	if free, err = bytegate.Hold(ctx, size); err != nil {
		return nil, nil, err
	}
	return events, free, nil
}

// tellEnd yields the end of a run once more, to somebody who says to have seen it: whoever follows
// a run is told at its end that nothing more comes.
func (s *Service) tellEnd(ctx context.Context, id string, yield func(api.Event, error) bool) {
	last, err := s.store.LastEvent(ctx, id)
	if err != nil || last.Type == string(api.EventEnd) {
		yield(eventOf(last), err)
	}
}

// newsOf returns a channel that is closed with the run's next event or log line. live is
// false when none can come.
func (l *loop) newsOf(id string) (news <-chan struct{}, live bool) {
	j := l.job(id)
	if j == nil {
		return nil, false
	}
	news = j.news.After()
	return news, !pause.Over(j.gone) // the last news comes when it is gone
}

// Log yields the log entries of a run. With follow it waits for more until the run's end.
func (s *Service) Log(ctx context.Context, id string, follow bool) iter.Seq2[api.LogEntry, error] {
	return func(yield func(api.LogEntry, error) bool) {
		if _, err := s.Get(ctx, id); err != nil {
			yield(api.LogEntry{}, err)
			return
		}
		t := runlog.NewTail(s.runPath(id))
		defer t.Close()
		for {
			news, live := s.newsOf(id)
			if more, err := t.Drain(yield); !more || err != nil {
				if err != nil {
					yield(api.LogEntry{}, err)
				}
				return
			}
			if !follow || !live {
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

// LastWords returns what a run that failed wrote last, see runlog.LastWords.
func (l *loop) LastWords(record api.Record) string {
	return runlog.LastWords(l.runPath(record.ID), record)
}

// OpenFile opens an output file of a run for reading. The file has to be in its record.
func (s *Service) OpenFile(ctx context.Context, id, name string) (*os.File, api.File, error) {
	record, err := s.Get(ctx, id)
	if err != nil {
		return nil, api.File{}, err
	}
	for _, file := range record.Files {
		if file.Name != name {
			continue
		}
		root, err := os.OpenRoot(s.outputPath(id))
		if err != nil {
			return nil, api.File{}, fault.Wrap(fault.NotFound, err, "the run's files are gone")
		}
		defer func() { _ = root.Close() }() // holds no data
		f, err := s.openWhole(root, id, file)
		return f, file, err
	}
	return nil, api.File{}, fault.New(fault.NotFound, "the run has no such file").WithHint("its record lists its files")
}

// FilePath returns where an output file lies on this host.
func (l *loop) FilePath(id, name string) string { return l.outputPath(id) + "/" + name }

func (l *loop) outputPath(id string) string { return l.runPath(id) + "/output" }
