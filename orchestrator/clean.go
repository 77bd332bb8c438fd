package orchestrator

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api"
)

// clean removes what isn't kept of the run. Its error is the process's end.
func (j *job) clean(ctx context.Context) error {
	again := j.settle(context.WithoutCancel(ctx))
	if err := j.enter(api.Cleanup, ""); err != nil {
		return err
	}
	if again != nil {
		j.handBack(context.WithoutCancel(ctx), again)
	}
	if err := j.removeContainers(ctx, again != nil); err != nil {
		return err
	}
	if err := j.removeAttempts(); err != nil {
		j.service.logger.Error("run's directory can't be cleaned", "run", j.id, about(err))
	}
	return j.enter(api.Idle, "")
}

// removeContainers removes what the engine has of the run; gone says that there is nothing to
// hand.
func (j *job) removeContainers(ctx context.Context, gone bool) error {
	if j.isRemote() {
		return nil // it never had any, and there may be no engine to ask
	}
	ctx = context.WithoutCancel(ctx) // also of a run that was cancelled
	// A container whose creation the engine didn't answer may have come since then.
	retried, left := len(j.record.Attempts) > 0, j.private.Boxes[-j.attempt] != ""
	if (gone || j.discard(ctx)) && !j.troubled && !retried && !left {
		return nil
	}
	return j.service.persist("remove containers", j.id, func() error { return j.removeOthers(ctx, 0) })
}

// discard removes the container that the job has to hand, and reports whether it did.
func (j *job) discard(ctx context.Context) bool {
	if j.box == nil {
		return false
	}
	if j.box.alive {
		j.box.desk.close(errCallerEnded)
	}
	err := j.box.sandbox.Remove(ctx)
	j.box = nil
	return err == nil
}

// removeAttempts leaves of the run's directory what is kept, or nothing.
func (j *job) removeAttempts() error {
	dir := j.service.runPath(j.id)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch entry.Name() {
		case logName:
			continue
		case "input", "output":
			_ = os.Remove(filepath.Join(dir, entry.Name())) // refused unless empty
			continue
		}
		if err := removeRun(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	_ = os.Remove(dir) // refused unless empty
	return nil
}
