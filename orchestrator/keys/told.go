package keys

import (
	"context"
	"errors"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Rows are the keys that are stored, on disk or in memory.
type Rows interface {
	Get(ctx context.Context, key string) (run, fingerprint string, err error)
}

// Events are the events of runs that are stored likewise, with a key or without one.
type Events interface {
	Append(ctx context.Context, run string, events ...store.Event) error
	AppendOnce(ctx context.Context, key store.Key, run string, events ...store.Event) (fresh bool, err error)
}

// Told reports whether something was stored under a key, or that something else was.
func Told(ctx context.Context, from Rows, key store.Key) (bool, error) {
	if key.Value == "" {
		return false, nil
	}
	_, fingerprint, err := from.Get(ctx, key.Value)
	switch {
	case fault.Is(err, fault.NotFound):
		return false, nil
	case err == nil && fingerprint != key.Fingerprint:
		return false, otherTold()
	}
	return err == nil, err
}

func otherTold() error {
	return fault.New(fault.Input, "the key belongs to something else that was told").
		WithHint("send another Idempotency-Key with something else")
}

// Tell stores an event, with its key where it has one.
func Tell(ctx context.Context, in Events, key store.Key, run string, event store.Event) error {
	ctx = context.WithoutCancel(ctx)
	if key.Value == "" {
		return in.Append(ctx, run, event)
	}
	_, err := in.AppendOnce(ctx, key, run, event)
	var taken *store.Taken
	if errors.As(err, &taken) {
		return otherTold()
	}
	return err
}
