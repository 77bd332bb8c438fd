package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/runtime"
)

// Save implements run.Host: it stores the job's record and its transition. It returns when
// both are safe, or when the process detaches from its runs.
func (j *job) Save(transition api.Transition) error {
	j.noteEgress()
	row, err := j.row()
	if err != nil {
		return err
	}
	held := j.held.take()
	events := slices.Concat(held.events, j.events(transition))
	err = j.loop.persist(j.loop.life, "save run", j.ID, func() error { return j.save(row, held.session, events) })
	if err == nil {
		j.pending = nil
		j.news.Notify()
	}
	return err
}

// save stores the run, and with it what its turn has left of its session; nil is nothing.
func (j *job) save(row store.Run, session json.RawMessage, events []store.Event) error {
	ctx := context.WithoutCancel(j.loop.life)
	if session == nil {
		return j.loop.journal.Save(ctx, row, events...)
	}
	return j.loop.journal.SaveTurn(ctx, j.session.Keep(session), row, events...)
}

// KeepSaved implements run.Host.
func (j *job) KeepSaved() error {
	row, err := j.row()
	if err != nil {
		return err
	}
	return j.loop.persist(j.loop.life, "keep run", j.ID, func() error {
		return j.loop.journal.Save(context.WithoutCancel(j.loop.life), row)
	})
}

// row returns the job as the store keeps it. Large documents that change at most once stand
// beside the record.
func (j *job) row() (store.Run, error) {
	record := j.Record
	row := store.Run{
		ID: j.ID, Unit: record.Unit, Kind: record.Kind, Parent: record.Parent, Root: record.Root,
		Session: record.Session, Turn: record.Turn,
		State: string(record.State), CreatedAt: record.CreatedAt, Input: record.Input, Output: record.Output,
	}
	if j.Over() {
		row.Finished, row.FinishedAt = true, *record.FinishedAt
		row.DiskBytes = safefs.TreeBytes(j.Dir) + int64(len(record.Input)+len(record.Output)) + j.documents
	}
	if record.Schedule != nil {
		row.Schedule = record.Schedule.Name
	}
	row.Context, row.MadeBy = record.Context, record.By
	record.Input, record.Output = nil, nil
	var err error
	if row.Record, err = json.Marshal(record); err != nil {
		return row, fmt.Errorf("encode record: %w", err)
	}
	private := j.private
	if j.Saved != nil {
		if private.Kind, err = json.Marshal(j.Saved); err != nil {
			return row, fmt.Errorf("encode run: %w", err)
		}
	}
	if row.Private, err = json.Marshal(private); err != nil {
		return row, fmt.Errorf("encode run: %w", err)
	}
	return row, nil
}

// recordOf is the inverse of row. The error is a fault.
func recordOf(row store.Run) (api.Record, error) {
	var record api.Record
	if err := json.Unmarshal(row.Record, &record); err != nil {
		return record, undecodable(err)
	}
	if record.ID != row.ID || string(record.State) != row.State {
		return record, undecodable(errors.New("its record is of another run or state"))
	}
	if !isDocument(row.Input) || !isDocument(row.Output) {
		return record, undecodable(errors.New("its input or output is no JSON"))
	}
	record.Input, record.Output = row.Input, row.Output
	record.Status = record.State.Status() // an older version didn't store it
	return record, nil
}

// events returns the events that are stored with a transition: the pending ones, the
// transition, and the end of the run after the last transition.
func (j *job) events(transition api.Transition) []store.Event {
	events := make([]store.Event, 0, len(j.pending)+2)
	for _, event := range j.pending {
		events = append(events, stored(event)...)
	}
	events = append(events, stored(run.Event{State: &transition})...)
	if j.Over() {
		events = append(events, newEvent(transition.At, api.EndEvent{State: j.Record.State, Outcome: j.Record.Outcome}))
	}
	return events
}

// Note implements run.Host: it keeps a log line, a step of a build or a warning.
func (j *job) Note(event run.Event) {
	switch {
	case event.Log != nil:
		j.log.Add(api.LogEntry{
			Time: event.Log.Time, Stream: event.Log.Stream, Text: event.Log.Text,
			Attempt: j.Attempt,
		})
		j.news.Notify()
	case event.Warning != "":
		j.pending = append(j.pending, event)
	default:
		if event.Progress != nil {
			j.said.Store(event.Progress)
		}
		j.append(stored(event)...)
	}
}

// append stores events between two transitions. An error is only logged.
func (j *job) append(events ...store.Event) {
	if len(events) == 0 {
		return
	}
	err := j.loop.journal.Append(context.WithoutCancel(j.loop.life), j.ID, events...)
	if err != nil {
		j.loop.logger.Warn("event not stored", "run", j.ID, fault.LogAttr(err))
		return
	}
	j.news.Notify()
}

// stored converts an event to the events that are stored.
func stored(event run.Event) []store.Event {
	now := time.Now().UTC()
	switch {
	case event.State != nil:
		entered := newEvent(event.State.At, *event.State)
		// the record shows the one before
		entered.Quiet = event.State.State == api.Cleanup || event.State.State == api.Idle
		return []store.Event{entered}
	case event.Attempt != nil:
		return []store.Event{newEvent(now,
			api.AttemptEvent{Attempt: *event.Attempt, RetryInMS: event.Delay.Milliseconds()})}
	case event.Warning != "":
		return []store.Event{newEvent(now, api.WarningEvent{Message: event.Warning})}
	case event.Progress != nil:
		return []store.Event{newEvent(now, api.ProgressEvent{
			Percent: event.Progress.Percent, Step: event.Progress.Step,
			Message: event.Progress.Message,
		})}
	case event.Upstream != nil:
		return []store.Event{newEvent(now, *event.Upstream)}
	case event.Model != nil:
		return []store.Event{newEvent(now, *event.Model)}
	case event.Node != nil:
		return []store.Event{newEvent(now, *event.Node)}
	case event.Egress != nil:
		return []store.Event{newEvent(now, *event.Egress)}
	case event.Build != nil && event.Build.State != runtime.StepLog:
		return []store.Event{newEvent(now,
			api.BuildEvent{Step: event.Build.Step, Name: event.Build.Name, State: string(event.Build.State)})}
	}
	return nil
}

func newEvent(at time.Time, data api.EventData) store.Event {
	raw, err := json.Marshal(data)
	if err != nil {
		raw = []byte("{}") // none of the types of data can fail
	}
	return store.Event{At: at, Type: string(data.EventType()), Data: raw}
}

// eventOf is the inverse of newEvent.
func eventOf(e store.Event) api.Event {
	return api.Event{Seq: e.Seq, Type: api.EventType(e.Type), Data: e.Data}
}
