package main

import (
	"context"
	"errors"
	"time"

	"github.com/docker/docker/client"
)

// freezing pauses a container that waits: what that saves, and how much later it would
// answer.
func (b *bench) freezing(ctx context.Context) (made part, err error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	warm, err := b.stock(ctx, 1, smallRun, smallUnit)
	if err != nil {
		return part{}, err
	}
	shelves, err := warm.shelves(ctx)
	if err != nil {
		return part{}, err
	}
	engine, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return part{}, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	entry := shelves[smallUnit].Waiting[0]
	var frozen, awake charge
	pause, thaw := series{name: "to freeze it"}, series{name: "to thaw it"}
	for range b.pairs {
		err := errors.Join(
			pause.time(func() error { return engine.ContainerPause(ctx, entry.Container) }),
			frozen.read(ctx, entry),
			thaw.time(func() error { return engine.ContainerUnpause(ctx, entry.Container) }),
			awake.read(ctx, entry),
		)
		if err != nil {
			return part{}, err
		}
	}
	made = group{}.part([]series{pause, thaw}, b.pairs)
	made.notes = append(made.notes, "Anonymous memory: "+mebibytes(frozen.anonymous)+" MiB frozen, "+
		mebibytes(awake.anonymous)+" MiB awake, where it takes no processor.")
	return made, nil
}

// time adds what something took.
func (s *series) time(do func() error) error {
	began := time.Now()
	err := do()
	s.times = append(s.times, time.Since(began))
	return err
}
