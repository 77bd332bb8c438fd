package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// ErrLeftBehind says that a container could not be removed: it is still there, or the engine
// could not tell.
var ErrLeftBehind = errors.New("the container is left behind")

func leftBehind(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("remove sandbox: %w: %w", ErrLeftBehind, err)
}

// Find returns the containers of a run, of every attempt and in any state, but not those with
// a LabelPurpose.
func Find(ctx context.Context, engine Containers, run, owner string) ([]ContainerRef, error) {
	refs, err := withLabels(ctx, engine, map[string]string{LabelRun: run, LabelOwner: owner})
	if err != nil {
		return nil, fmt.Errorf("find sandboxes: %w", err)
	}
	return slices.DeleteFunc(refs, func(ref ContainerRef) bool { return ref.Labels[LabelPurpose] != "" }), nil
}

// RemoveAll removes all containers and volumes of a run, of every attempt, also when ctx is
// over already. Every error is ErrLeftBehind.
func RemoveAll(ctx context.Context, engine Containers, run, owner string) error {
	return RemoveOthers(ctx, engine, run, owner, 0)
}

// RemoveOthers is RemoveAll, and keeps the container and the volumes of one attempt.
func RemoveOthers(ctx context.Context, engine Containers, run, owner string, attempt int) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	_, err := removeLabelled(ctx, engine, map[string]string{LabelRun: run, LabelOwner: owner},
		func(labels map[string]string) bool {
			return labels[LabelAttempt] == strconv.Itoa(attempt) && labels[LabelPurpose] == ""
		})
	return err
}

// RemoveStray removes the containers and volumes of an owner's runs that aren't live, and
// returns how many they were. Every error is ErrLeftBehind.
func RemoveStray(
	ctx context.Context, engine Containers, owner string, live func(run string) bool,
) (removed int, err error) {
	return removeLabelled(ctx, engine, map[string]string{LabelOwner: owner}, func(labels map[string]string) bool {
		return live(labels[LabelRun])
	})
}

// removeAttempt removes the containers and volumes of one attempt.
func removeAttempt(ctx context.Context, engine Containers, spec Spec) error {
	_, err := removeLabelled(ctx, engine, map[string]string{
		LabelRun: spec.Run, LabelOwner: spec.Owner, LabelAttempt: strconv.Itoa(spec.attempt()),
	}, func(map[string]string) bool { return false })
	return err
}

// removeLabelled removes the containers with these labels, and their volumes at a remote
// engine, except those to keep.
func removeLabelled(
	ctx context.Context, engine Containers, labels map[string]string, keep func(map[string]string) bool,
) (removed int, err error) {
	refs, err := withLabels(ctx, engine, labels)
	for _, ref := range refs {
		if !keep(ref.Labels) {
			err = errors.Join(err, engine.Remove(ctx, ref.ID))
			removed++
		}
	}
	remote, ok := remoteOf(engine)
	if !ok {
		return removed, leftBehind(err)
	}
	volumes, listErr := remote.VolumesByLabel(ctx, labels)
	err = errors.Join(err, listErr)
	for _, v := range volumes {
		if hasLabels(v.Labels, labels) && !keep(v.Labels) {
			err = errors.Join(err, remote.RemoveVolume(ctx, v.Name))
			removed++
		}
	}
	return removed, leftBehind(err)
}

// withLabels returns the containers that have exactly these labels: for an engine, an empty
// value matches any.
func withLabels(ctx context.Context, engine Containers, labels map[string]string) (exact []ContainerRef, err error) {
	refs, err := engine.ContainersByLabel(ctx, labels)
	for _, ref := range refs {
		if hasLabels(ref.Labels, labels) {
			exact = append(exact, ref)
		}
	}
	return exact, err
}

func hasLabels(have, labels map[string]string) bool {
	for name, value := range labels {
		if got, ok := have[name]; !ok || got != value {
			return false
		}
	}
	return true
}
