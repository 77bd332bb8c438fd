package container

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// footprint is what the engine has, or may have, of a run.
type footprint struct {
	run     *run.Run
	machine *machine
	saved   *saved
	pooled  *poolUser
	outage  *outage

	begun     bool // the engine was asked for something of this run's
	uncertain bool // the engine may hold something of it that this process doesn't know
}

// doubt notes that an answer of the engine was lost.
func (f *footprint) doubt() { f.uncertain = f.begun }

// reconcile waits for the engine, returns the container of this attempt if there is one, and
// removes those of earlier attempts.
func (f *footprint) reconcile(ctx context.Context) (container string, err error) {
	if err := f.outage.awaitEngine(ctx); err != nil {
		return "", err
	}
	refs, err := runtime.Find(ctx, f.machine.engine, f.run.ID, f.machine.home.Owner)
	if err != nil {
		return "", err
	}
	for _, ref := range refs {
		if ref.Labels[runtime.LabelAttempt] == strconv.Itoa(f.run.Attempt) {
			container = ref.ID
		}
	}
	if container == "" {
		if container, err = f.findAcquired(ctx); err != nil {
			return "", err
		}
	}
	if err := f.removeOthers(ctx, f.run.Attempt); err != nil {
		return "", err
	}
	if container == "" && f.run.State() == api.Running {
		return "", vanished(nil)
	}
	f.uncertain = false
	return container, nil
}

// findAcquired returns the container of the warm sandbox that an earlier process claimed for
// the attempt. If the claim was not complete, the sandbox is removed and the attempt begins
// anew.
func (f *footprint) findAcquired(ctx context.Context) (container string, err error) {
	id := f.saved.Sandboxes[f.run.Attempt]
	if id == "" {
		return "", nil
	}
	engine, owner := f.machine.engine, f.machine.home.Owner
	refs, err := runtime.Find(ctx, engine, id, owner)
	if err != nil || len(refs) == 0 {
		return "", err
	}
	_, moved := os.Stat(f.run.AttemptDir()) // the sandbox's directory, when the claim was complete
	if f.run.State() == api.Running || moved == nil && (f.pooled.hasResult() || f.pooled.placeInput() == nil) {
		return refs[0].ID, nil
	}
	err = runtime.RemoveAll(ctx, engine, id, owner)
	f.pooled.abandon(err == nil)
	return "", err
}

// removeOthers removes what the engine has of all attempts but one, with the warm sandboxes
// that they acquired. There is no attempt 0.
func (f *footprint) removeOthers(ctx context.Context, one int) error {
	engine, owner := f.machine.engine, f.machine.home.Owner
	err := runtime.RemoveOthers(ctx, engine, f.run.ID, owner, one)
	for attempt, id := range f.saved.Sandboxes {
		if attempt != one {
			err = errors.Join(err, runtime.RemoveAll(ctx, engine, id, owner))
		}
	}
	return err
}

// lookAgain is the wait between two requests to an engine for the same answer.
const lookAgain = 100 * time.Millisecond

// awaitNamed waits for the container whose name is taken: an earlier process asked for it,
// and the engine has yet to finish it.
func (f *footprint) awaitNamed(ctx context.Context) (container string, err error) {
	const wait = 10 * time.Second
	for end := time.Now().Add(wait); ; {
		if container, err = f.reconcile(ctx); err != nil || container != "" {
			return container, err
		}
		if time.Now().After(end) {
			return "", fault.New(fault.Unavailable, "the engine has a container of the run's name and doesn't show it")
		}
		_ = pause.For(ctx, lookAgain) // an end is seen above
	}
}
