package orchestrator

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// open gives the job its box: of the container that there is already, or of a new one.
func (j *job) open(ctx context.Context) (err error) {
	container := ""
	if j.troubled {
		container, err = j.reconcile(ctx)
	}
	if err == nil && container == "" {
		err = j.launch(ctx)
		if !fault.Is(err, fault.Conflict) {
			return err
		}
		container, err = j.appear(ctx)
	}
	if err != nil {
		return err
	}
	j.service.logger.Info("adopting container", "run", j.id, "attempt", j.attempt, "container", container)
	j.box, err = j.service.exec.adopt(ctx, j.Run, container, j.dir(), j.log.seen(j.attempt))
	return err
}

// launch starts a container for the attempt.
func (j *job) launch(ctx context.Context) error {
	if err := j.enter(Starting, ""); err != nil {
		return err
	}
	if err := j.makeDir(); err != nil {
		return err
	}
	box, err := j.service.exec.start(ctx, j.Run, j.dir())
	if fault.Is(err, fault.NotFound) { // somebody removed the image
		j.service.exec.images.forget(j.imageKey())
		box, err = j.service.exec.start(ctx, j.Run, j.dir())
	}
	j.box = box
	return err
}

// appear waits for the container whose name is taken: an earlier process asked for it,
// and the engine has yet to finish it.
func (j *job) appear(ctx context.Context) (container string, err error) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if container, err = j.reconcile(ctx); err != nil || container != "" {
			return container, err
		}
		select {
		case <-time.After(persistDelay):
		case <-ctx.Done():
			return "", fault.New(fault.Unavailable, "the engine has a container of the run's name and doesn't show it")
		}
	}
}

// dir is the directory of the attempt.
func (j *job) dir() string { return filepath.Join(j.service.runPath(j.id), strconv.Itoa(j.attempt)) }

// makeDir makes it, empty: of what a dead process began here nothing was ever started.
func (j *job) makeDir() error {
	if err := removeRun(j.dir()); err != nil {
		return err
	}
	if err := os.MkdirAll(j.dir(), 0o700); err != nil {
		return noRoom(err)
	}
	return nil
}

// reconcile finds what the engine has of the run, when it answers again: the container
// of this attempt, which is returned, and those of earlier ones, which go.
func (j *job) reconcile(ctx context.Context) (container string, err error) {
	waiting, stop := j.service.waiting(ctx)
	defer stop()
	if err := j.service.awaitEngine(waiting); err != nil {
		return "", err
	}
	refs, err := runtime.Find(ctx, j.service.exec.engine, j.id, j.service.exec.owner)
	if err != nil {
		return "", err
	}
	for _, ref := range refs {
		if ref.Labels[runtime.LabelAttempt] == strconv.Itoa(j.attempt) {
			container = ref.ID
		}
	}
	if err := runtime.RemoveOthers(ctx, j.service.exec.engine, j.id, j.service.exec.owner, j.attempt); err != nil {
		return "", err
	}
	if container == "" && j.record.State == Running {
		return "", vanished(nil)
	}
	j.troubled = false
	return container, nil
}
