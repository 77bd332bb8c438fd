package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/inputs"
	"github.com/agent-on-demand/aod/orchestrator/keys"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
	"github.com/agent-on-demand/aod/runtime"
)

// Save implements run.Host: it stores the job's record and its transition. It returns when
// both are safe, or when the process detaches from its runs.
func (j *job) Save(transition api.Transition) error {
	j.eachPart(feature.Part.Note)
	row, err := j.row()
	if err != nil {
		return err
	}
	waiting := j.deferred.Take()
	events := slices.Concat(waiting.Events, j.events(transition))
	err = j.loop.persist(j.loop.life, "save run", j.ID, func() error { return j.save(row, waiting.Session, events) })
	if err == nil {
		j.live.News.Notify()
	}
	return err
}

// Hold implements run.Host.
func (j *job) Hold(transition api.Transition) error {
	row, err := j.row()
	if err == nil {
		j.deferred.Add(store.Waiting{Row: &row, Events: j.events(transition)})
	}
	return err
}

// save stores the run, and with it what its turn has left of its session; nil is nothing.
func (j *job) save(row store.Run, session json.RawMessage, events []store.Event) error {
	ctx := context.WithoutCancel(j.loop.life)
	if session == nil {
		return j.loop.journal.Runs.Save(ctx, row, events...)
	}
	return j.turn.Commit(ctx, j.loop.journal.Sessions, session, &row, events...)
}

// KeepSession implements run.Host.
func (j *job) KeepSession(saved json.RawMessage, told []api.AgentEvent) error {
	waiting := j.deferred.Take()
	events := slices.Concat(waiting.Events, toldEvents(told))
	err := j.loop.persist(j.loop.life, "keep session", j.ID, func() error {
		ctx := context.WithoutCancel(j.loop.life)
		if j.turn != nil {
			return j.turn.Commit(ctx, j.loop.journal.Sessions, saved, waiting.Row, events...)
		}
		row, err := j.row()
		if err != nil {
			return err
		}
		return j.loop.journal.Runs.Save(ctx, row, events...)
	})
	if err == nil {
		j.live.News.Notify()
	}
	return err
}

// KeepTurn implements run.Host.
func (j *job) KeepTurn(saved json.RawMessage, told []api.AgentEvent) {
	if j.turn == nil {
		saved = nil // it is stored with the run
	}
	j.deferred.Add(store.Waiting{Session: saved, Events: toldEvents(told)})
}

func toldEvents(told []api.AgentEvent) []store.Event {
	now := time.Now().UTC()
	events := make([]store.Event, 0, len(told))
	for _, one := range told {
		events = append(events, newEvent(now, one))
	}
	return events
}

// KeepSaved implements run.Host.
func (j *job) KeepSaved() error {
	row, err := j.row()
	if err != nil {
		return err
	}
	return j.loop.persist(j.loop.life, "keep run", j.ID, func() error {
		return j.loop.journal.Runs.Save(context.WithoutCancel(j.loop.life), row)
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
		row.DiskBytes = safefs.TreeBytes(j.Dir) + int64(len(record.Input)+len(record.Output)) + j.documentBytes()
	}
	if record.Schedule != nil {
		row.Schedule = record.Schedule.Name
	}
	row.Context, row.Step, row.Outcome = record.Context, record.Step, string(record.Outcome)
	row.Team, row.MadeBy = api.TeamOf(record.Owner), record.By
	if record.Error != nil {
		row.ErrorKind = record.Error.Kind
	}
	if record.StartedAt != nil {
		row.StartedAt = *record.StartedAt
	}
	if record.Models != nil {
		row.Tokens, row.Cost = record.Models.Charged, int64(record.Models.Cost)
	}
	record.Input, record.Output = nil, nil
	var err error
	if row.Record, err = json.Marshal(record); err != nil {
		return row, fmt.Errorf("encode record: %w", err)
	}
	row.Private, err = j.private()
	return row, err
}

// documentBytes counts what the run has in the database: it fills the disk like files, and goes with the run.
func (j *job) documentBytes() int64 {
	if j.loop.store == nil {
		return 0
	}
	bytes, err := j.loop.store.Runs.DocumentBytes(context.WithoutCancel(j.loop.life), j.ID)
	if err != nil {
		j.loop.logger.Warn("documents of a run not counted", "run", j.ID, fault.LogAttr(err))
	}
	return bytes
}

// private is the part of a stored run that the next process needs and no client sees.
type private struct {
	run.Terms
	inputs.Given
	Unattended bool     `json:"unattended,omitempty"`
	Rewound    *rewound `json:"rewound,omitempty"`

	Start capsule.AgentStart `json:"start,omitzero"` // see run.Run.Start

	Path     []handoff.Step `json:"path,omitempty"` // see run.Lineage
	Deadline time.Time      `json:"deadline,omitzero"`

	Masking unit.Masking    `json:"masking,omitempty"` // see run.Run.Masking
	Kind    json.RawMessage `json:"kind,omitempty"`    // see run.Run.Saved
	Session json.RawMessage `json:"session,omitempty"` // of a session for this turn alone, see run.Session.Saved
}

// private returns what is stored of the run for the next process.
func (j *job) private() (raw []byte, err error) {
	p := private{
		Terms: j.terms, Given: j.given, Unattended: j.Unattended, Rewound: j.rewound, Start: j.Start,
		Path: j.Lineage.Path, Deadline: j.Lineage.Deadline, Masking: j.Masking,
	}
	if j.Session != nil && j.Session.Single {
		p.Session = j.Session.Saved
	}
	if j.Saved != nil {
		if p.Kind, err = json.Marshal(j.Saved); err != nil {
			return nil, fmt.Errorf("encode run: %w", err)
		}
	}
	if raw, err = json.Marshal(p); err != nil {
		return nil, fmt.Errorf("encode run: %w", err)
	}
	return raw, nil
}

// events returns the events of a transition: itself, and the end of the run after the last one.
func (j *job) events(transition api.Transition) []store.Event {
	events := stored(run.Event{State: &transition})
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
		j.live.News.Notify()
	case event.Warning != "":
		j.deferred.Add(store.Waiting{Events: stored(event)})
	default:
		if event.Progress != nil {
			j.said.Store(event.Progress)
		}
		j.append(stored(event)...)
	}
}

// WasTold implements run.Host.
func (j *job) WasTold(ctx context.Context, once run.Once) (bool, error) {
	return keys.Told(ctx, j.loop.journal.Keys, store.Key{Value: once.Key, Fingerprint: once.Fingerprint})
}

// TellOnce implements run.Host.
func (j *job) TellOnce(ctx context.Context, once run.Once, data api.EventData) error {
	key := store.Key{Value: once.Key, Fingerprint: once.Fingerprint}
	if err := keys.Tell(ctx, j.loop.journal.Events, key, j.ID, newEvent(time.Now().UTC(), data)); err != nil {
		return err
	}
	j.live.News.Notify()
	j.Show(data)
	return nil
}

// append stores events between two transitions. An error is only logged.
func (j *job) append(events ...store.Event) {
	if len(events) == 0 {
		return
	}
	err := j.loop.journal.Events.Append(context.WithoutCancel(j.loop.life), j.ID, events...)
	if err != nil {
		j.loop.logger.Warn("event not stored", "run", j.ID, fault.LogAttr(err))
		return
	}
	j.live.News.Notify()
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
	case event.Data != nil:
		return []store.Event{newEvent(now, event.Data)}
	case event.Build != nil && event.Build.State != runtime.StepLog:
		return []store.Event{newEvent(now,
			api.BuildEvent{Step: event.Build.Step, Name: event.Build.Name, State: string(event.Build.State)})}
	}
	return nil
}

func newEvent(at time.Time, data api.EventData) store.Event {
	return store.NewEvent(at, string(data.EventType()), data)
}
