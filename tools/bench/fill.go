package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// fill writes finished runs of the last day into a new store.
func fill(ctx context.Context, data string, n int, model api.Record) (err error) {
	home := filepath.Join(data, "server")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	s, err := store.Open(filepath.Join(home, "aod.db"), store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	const fillers = 64 // that wait for the disk together
	first, step := time.Now().Add(-24*time.Hour), 24*time.Hour/time.Duration(n)
	numbers := make(chan int)
	var work sync.WaitGroup
	for range fillers {
		work.Go(func() {
			for i := range numbers {
				if err := insert(ctx, s, i, first.Add(time.Duration(i)*step), model); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		numbers <- i
	}
	close(numbers)
	work.Wait()
	return context.Cause(ctx)
}

// insert stores a run like the model, of one of twenty units; every tenth failed.
func insert(ctx context.Context, s *store.Store, i int, at time.Time, model api.Record) error {
	record := moved(model, at)
	record.Unit = fmt.Sprintf("unit-%02d", i%20)
	if i%10 == 3 {
		one := 1
		record.State, record.Outcome, record.ExitCode, record.Output = api.Failed, api.CapsuleError, &one, nil
		record.Error = &api.RunError{
			Category: api.CategoryAgent, Kind: string(api.CapsuleError), Type: "ValueError",
			Message: "the table has no column nope",
		}
	}
	row := store.Run{
		ID: record.ID, Unit: record.Unit, Kind: record.Kind, Root: record.Root, State: string(record.State),
		Finished: true, Outcome: string(record.Outcome), StartedAt: *record.StartedAt,
		CreatedAt: at, FinishedAt: *record.FinishedAt, DiskBytes: 2000, Private: []byte(`{"retries":3}`),
		Input: record.Input, Output: record.Output,
	}
	if record.Error != nil {
		row.ErrorKind = record.Error.Kind
	}
	record.Input, record.Output = nil, nil
	raw, err := json.Marshal(record)
	if err != nil {
		return err
	}
	row.Record = raw
	events, err := eventsOf(record)
	if err != nil {
		return err
	}
	return s.Runs.Insert(ctx, row, store.Key{}, events...)
}

// moved is the model as if it had been made at another time.
func moved(model api.Record, at time.Time) api.Record {
	record, by := model, at.Sub(model.CreatedAt)
	record.ID = idAt(at)
	record.Root, record.CreatedAt = record.ID, at
	started, finished := model.StartedAt.Add(by), model.FinishedAt.Add(by)
	record.StartedAt, record.FinishedAt = &started, &finished
	record.Transitions = nil
	for _, t := range model.Transitions {
		t.At = t.At.Add(by)
		record.Transitions = append(record.Transitions, t)
	}
	return record
}

// idAt is an id that sorts by the time (UUID v7).
func idAt(at time.Time) string {
	id := uuid.Must(uuid.NewV7())
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	return id.String()
}

func eventsOf(record api.Record) (events []store.Event, err error) {
	add := func(at time.Time, data api.EventData) {
		raw, failure := json.Marshal(data)
		events = append(events, store.Event{At: at, Type: string(data.EventType()), Data: raw})
		err = errors.Join(err, failure)
	}
	for _, t := range record.Transitions {
		add(t.At, t)
	}
	add(*record.FinishedAt, api.EndEvent{State: record.State, Outcome: record.Outcome})
	return events, err
}
