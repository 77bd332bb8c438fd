package orchestrator

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/runtime"
)

// clean removes what isn't kept of the run. Its error is the process's end.
func (j *job) clean(ctx context.Context) error {
	if err := j.enter(Cleanup, ""); err != nil {
		return err
	}
	if err := j.removeContainers(ctx); err != nil {
		return err
	}
	if err := j.removeAttempts(); err != nil {
		j.service.logger.Error("run's directory can't be cleaned", "run", j.id, about(err))
	}
	return j.enter(Idle, "")
}

func (j *job) removeContainers(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // also of a run that was cancelled
	// A container whose creation the engine didn't answer may have come since then.
	if retried := len(j.record.Attempts) > 0; j.discard(ctx) && !j.troubled && !retried {
		return nil
	}
	return j.service.persist("remove containers", j.id, func() error {
		return runtime.RemoveAll(ctx, j.service.exec.engine, j.id, j.service.exec.owner)
	})
}

// discard removes the container that the job has to hand, and reports whether it did.
func (j *job) discard(ctx context.Context) bool {
	if j.box == nil {
		return false
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
