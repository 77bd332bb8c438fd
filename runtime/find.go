package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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

// Find returns the containers of a run, of every attempt and in any state, but for those
// beside its own.
func Find(ctx context.Context, engine Containers, run, owner string) ([]ContainerRef, error) {
	refs, err := labelled(ctx, engine, map[string]string{LabelRun: run, LabelOwner: owner})
	if err != nil {
		return nil, fmt.Errorf("find sandboxes: %w", err)
	}
	return slices.DeleteFunc(refs, func(ref ContainerRef) bool { return ref.Labels[LabelAside] != "" }), nil
}

// RemoveAll removes what the engine has of a run, of every attempt, also when ctx is over
// already. An error is ErrLeftBehind.
func RemoveAll(ctx context.Context, engine Containers, run, owner string) error {
	return RemoveOthers(ctx, engine, run, owner, 0)
}

// RemoveOthers is RemoveAll but for the container and the volumes of one attempt.
func RemoveOthers(ctx context.Context, engine Containers, run, owner string, attempt int) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	_, err := removeLabelled(ctx, engine, map[string]string{LabelRun: run, LabelOwner: owner}, func(labels map[string]string) bool {
		return labels[LabelAttempt] == strconv.Itoa(attempt) && labels[LabelAside] == ""
	})
	return err
}

// RemoveStray removes what the engine has of an owner's runs that aren't live, and returns
// how many containers and volumes that was. An error is ErrLeftBehind.
func RemoveStray(ctx context.Context, engine Containers, owner string, live func(run string) bool) (removed int, err error) {
	return removeLabelled(ctx, engine, map[string]string{LabelOwner: owner}, func(labels map[string]string) bool {
		return live(labels[LabelRun])
	})
}

// removeAttempt removes what the engine has of one attempt.
func removeAttempt(ctx context.Context, engine Containers, spec Spec) error {
	_, err := removeLabelled(ctx, engine, map[string]string{
		LabelRun: spec.Run, LabelOwner: spec.Owner, LabelAttempt: strconv.Itoa(spec.attempt()),
	}, func(map[string]string) bool { return false })
	return err
}

// removeLabelled removes the containers with these labels, and with a remote engine their
// volumes, but for what is to be kept.
func removeLabelled(ctx context.Context, engine Containers, labels map[string]string, keep func(map[string]string) bool) (removed int, err error) {
	refs, err := labelled(ctx, engine, labels)
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
		if carries(v.Labels, labels) && !keep(v.Labels) {
			err = errors.Join(err, remote.RemoveVolume(ctx, v.Name))
			removed++
		}
	}
	return removed, leftBehind(err)
}

// labelled returns the containers whose labels have these very values: an engine takes
// an empty one for any.
func labelled(ctx context.Context, engine Containers, labels map[string]string) (exact []ContainerRef, err error) {
	refs, err := engine.ContainersByLabel(ctx, labels)
	for _, ref := range refs {
		if carries(ref.Labels, labels) {
			exact = append(exact, ref)
		}
	}
	return exact, err
}

func carries(have, labels map[string]string) bool {
	for name, value := range labels {
		if got, ok := have[name]; !ok || got != value {
			return false
		}
	}
	return true
}
