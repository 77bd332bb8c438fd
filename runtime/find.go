package runtime

import (
	"context"
	"errors"
	"fmt"
)

// ErrLeftBehind says that a container could not be removed: it is still there, or the
// engine could not tell.
var ErrLeftBehind = errors.New("the container is left behind")

func leftBehind(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("remove sandbox: %w: %w", ErrLeftBehind, err)
}

// Find returns the containers of a run, of every attempt and in any state.
func Find(ctx context.Context, engine Containers, run, owner string) ([]ContainerRef, error) {
	refs, err := labelled(ctx, engine, map[string]string{LabelRun: run, LabelOwner: owner})
	if err != nil {
		return nil, fmt.Errorf("find sandboxes: %w", err)
	}
	return refs, nil
}

// RemoveAll removes the containers of a run, of every attempt, also when ctx is over
// already. An error is ErrLeftBehind.
func RemoveAll(ctx context.Context, engine Containers, run, owner string) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	return removeLabelled(ctx, engine, map[string]string{LabelRun: run, LabelOwner: owner})
}

func removeLabelled(ctx context.Context, engine Containers, labels map[string]string) error {
	refs, err := labelled(ctx, engine, labels)
	for _, ref := range refs {
		err = errors.Join(err, engine.Remove(ctx, ref.ID))
	}
	return leftBehind(err)
}

// labelled returns the containers whose labels have these very values: an engine takes
// an empty one for any.
func labelled(ctx context.Context, engine Containers, labels map[string]string) (exact []ContainerRef, err error) {
	refs, err := engine.ContainersByLabel(ctx, labels)
	for _, ref := range refs {
		if ref.carries(labels) {
			exact = append(exact, ref)
		}
	}
	return exact, err
}

func (r ContainerRef) carries(labels map[string]string) bool {
	for name, value := range labels {
		if got, ok := r.Labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}
