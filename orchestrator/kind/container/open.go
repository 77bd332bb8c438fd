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
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// lookAgain is the wait between two requests to an engine for the same answer.
const lookAgain = 100 * time.Millisecond

// open gives the attempt a container: the existing one, a warm one, or a new one.
func (x *execution) open(ctx context.Context) (err error) {
	container := ""
	if x.uncertain {
		container, err = x.reconcile(ctx)
	}
	if err == nil && container == "" {
		err = x.launch(ctx)
		if !fault.Is(err, fault.Conflict) {
			return err
		}
		container, err = x.awaitNamed(ctx)
	}
	if err != nil {
		return err
	}
	return x.adopt(ctx, container)
}

// adopt goes on with the container that an earlier process started.
func (x *execution) adopt(ctx context.Context, container string) (err error) {
	x.containers.logger.Info("adopting container", "run", x.ID, "attempt", x.Run.Attempt, "container", container)
	if x.attempt, err = x.adopted(ctx, container); err != nil {
		return err
	}
	if x.saved.Sandboxes[x.Run.Attempt] != "" {
		x.attempt.origin = warm
	}
	if x.State() != api.Running { // the earlier process stored no more
		a := x.attempt
		x.Record.Container = &api.Container{
			ID:       container,
			WaitedMS: run.Milliseconds(a.startedAt().Sub(a.sandbox.StartedAt())), Served: x.saved.Slot.Number,
		}
	}
	return nil
}

// launch gives the attempt a warm container, or else a new one.
func (x *execution) launch(ctx context.Context) error {
	x.beginsAnew()
	x.saved.Slot = pool.ReuseSlot{}
	var waiting *pool.Sandbox
	if !x.cold && !x.Project && x.Session == nil && x.Start.Dir == "" && canWait(x.Unit) {
		waiting = x.containers.pool.Acquire(x.Unit)
	}
	if waiting == nil {
		return x.launchCold(ctx)
	}
	x.acquire(waiting)
	if err := x.Enter(api.Starting, ""); err != nil {
		return errors.Join(err, waiting.Discard(ctx))
	}
	err := x.claim(ctx, waiting)
	if err == nil {
		return nil
	}
	x.containers.logger.Warn("waiting sandbox not claimed", "run", x.ID, "sandbox", waiting.ID, fault.LogAttr(err))
	x.abandonWarm(waiting.Discard(ctx) == nil)
	if err := x.Enter(api.Failed, "the waiting sandbox could not be claimed"); err != nil {
		return err
	}
	return x.launchCold(ctx)
}

// acquire remembers which warm sandbox the attempt has.
func (x *execution) acquire(waiting *pool.Sandbox) {
	if x.saved.Sandboxes == nil {
		x.saved.Sandboxes = map[int]string{}
	}
	x.saved.Sandboxes[x.Run.Attempt] = waiting.ID
	x.saved.Slot = waiting.Slot()
	x.begun = true
}

// abandonWarm forgets the attempt's warm sandbox. If that was not removed, the end of the run
// removes it.
func (x *execution) abandonWarm(removed bool) {
	id := x.saved.Sandboxes[x.Run.Attempt]
	delete(x.saved.Sandboxes, x.Run.Attempt)
	x.saved.Slot = pool.ReuseSlot{}
	x.cold = true
	if id == "" { // it was the attempt's own
		return
	}
	if removed {
		x.containers.pool.Forget(id)
		return
	}
	x.saved.Sandboxes[-x.Run.Attempt] = id
}

// refuseWarm gives up a warm sandbox whose program never got the run. The run has had no
// effect yet.
func (x *execution) refuseWarm(ctx context.Context) error {
	const reason = "the waiting sandbox ended before its run began"
	x.containers.logger.Warn(reason, "run", x.ID, "sandbox", x.saved.Sandboxes[x.Run.Attempt])
	x.abandonWarm(x.discard(ctx))
	x.saved.Refused = x.Logged()
	return x.Enter(api.Failed, reason)
}

// launchCold starts a new container for the attempt.
func (x *execution) launchCold(ctx context.Context) error {
	defer x.containers.pool.ColdStart()()
	if err := x.Enter(api.Starting, ""); err != nil {
		return err
	}
	err := x.launchNew(ctx)
	if fault.Is(err, fault.NotFound) { // somebody removed the image
		x.containers.images.Delete(pool.Key(x.Unit))
		x.containers.opts.Patches.forget(x.Unit.Name)
		err = x.launchNew(ctx)
	}
	return err
}

func (x *execution) launchNew(ctx context.Context) error {
	image, err := x.image(ctx)
	if err != nil {
		return err
	}
	x.begun = true
	x.attempt, err = x.start(ctx, image)
	return err
}

// awaitNamed waits for the container whose name is taken: an earlier process asked for it,
// and the engine has yet to finish it.
func (x *execution) awaitNamed(ctx context.Context) (container string, err error) {
	const wait = 10 * time.Second
	for end := time.Now().Add(wait); ; {
		if container, err = x.reconcile(ctx); err != nil || container != "" {
			return container, err
		}
		if time.Now().After(end) {
			return "", fault.New(fault.Unavailable, "the engine has a container of the run's name and doesn't show it")
		}
		_ = pause.For(ctx, lookAgain) // an end is seen above
	}
}

// reconcile waits for the engine, returns the container of this attempt if there is one, and
// removes those of earlier attempts.
func (x *execution) reconcile(ctx context.Context) (container string, err error) {
	if err := x.awaitEngine(ctx); err != nil {
		return "", err
	}
	refs, err := runtime.Find(ctx, x.containers.engine, x.ID, x.containers.home.Owner)
	if err != nil {
		return "", err
	}
	for _, ref := range refs {
		if ref.Labels[runtime.LabelAttempt] == strconv.Itoa(x.Run.Attempt) {
			container = ref.ID
		}
	}
	if container == "" {
		if container, err = x.findAcquired(ctx); err != nil {
			return "", err
		}
	}
	if err := x.removeOthers(ctx, x.Run.Attempt); err != nil {
		return "", err
	}
	if container == "" && x.State() == api.Running {
		return "", vanished(nil)
	}
	x.uncertain = false
	return container, nil
}

// removeOthers removes what the engine has of all attempts but one, with the warm sandboxes
// that they acquired. There is no attempt 0.
func (x *execution) removeOthers(ctx context.Context, one int) error {
	engine, owner := x.containers.engine, x.containers.home.Owner
	err := runtime.RemoveOthers(ctx, engine, x.ID, owner, one)
	for attempt, id := range x.saved.Sandboxes {
		if attempt != one {
			err = errors.Join(err, runtime.RemoveAll(ctx, engine, id, owner))
		}
	}
	return err
}

// findAcquired returns the container of the warm sandbox that an earlier process claimed for
// the attempt. If the claim was not complete, the sandbox is removed and the attempt begins
// anew.
func (x *execution) findAcquired(ctx context.Context) (container string, err error) {
	id := x.saved.Sandboxes[x.Run.Attempt]
	if id == "" {
		return "", nil
	}
	engine, owner := x.containers.engine, x.containers.home.Owner
	refs, err := runtime.Find(ctx, engine, id, owner)
	if err != nil || len(refs) == 0 {
		return "", err
	}
	_, moved := os.Stat(x.AttemptDir()) // the sandbox's directory, when the claim was complete
	if x.State() == api.Running || moved == nil && (x.hasResult() || x.placeInput() == nil) {
		return refs[0].ID, nil
	}
	err = runtime.RemoveAll(ctx, engine, id, owner)
	x.abandonWarm(err == nil)
	return "", err
}

// hasResult reports whether the program has posted its result. It gets no input then, since
// it may be waiting for another run.
func (x *execution) hasResult() bool {
	_, err := os.Stat(runtime.OpenLayout(x.AttemptDir(), "").PostedResult())
	return err == nil && x.saved.Slot.Continues()
}

// placeInput gives an acquired sandbox the run's input.
func (x *execution) placeInput() error {
	layout := runtime.OpenLayout(x.AttemptDir(), "")
	return errors.Join(layout.LinkInputs(x.InputDir()), layout.WriteInput(x.Input.Payload.JSON()))
}
