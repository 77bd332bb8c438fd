package orchestrator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/agent-on-demand/aod/api"
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
	if j.box, err = j.service.exec.adopt(ctx, j.Run, container, j.dir(), j.log.seen(j.attempt).behind(j.private.Refused)); err != nil {
		return err
	}
	j.box.waited = j.private.Boxes[j.attempt] != ""
	if j.record.State != api.Running { // the earlier process stored no more
		j.record.Container = &api.Container{ID: container, WaitedMS: milliseconds(j.box.startedAt().Sub(j.box.sandbox.StartedAt())), Served: j.lease.Number}
	}
	return nil
}

// launch gives the attempt a container: one that waits for it, or else a new one.
func (j *job) launch(ctx context.Context) error {
	j.leased(lease{})
	var waiting *parked
	if !j.cold {
		waiting = j.service.pool.take(j.Run)
	}
	if waiting == nil {
		return j.launchCold(ctx)
	}
	j.borrow(waiting.id)
	j.leased(waiting.lease())
	if err := j.enter(api.Starting, ""); err != nil {
		return errors.Join(err, waiting.discard(ctx))
	}
	err := j.occupy(ctx, waiting)
	if err == nil {
		return nil
	}
	j.service.logger.Warn("waiting sandbox not claimed", "run", j.id, "sandbox", waiting.id, about(err))
	j.giveBack(waiting.discard(ctx) == nil)
	if err := j.enter(api.Failed, "the waiting sandbox could not be claimed"); err != nil {
		return err
	}
	return j.launchCold(ctx)
}

// borrow remembers which waiting sandbox the attempt becomes.
func (j *job) borrow(id string) {
	if j.private.Boxes == nil {
		j.private.Boxes = map[int]string{}
	}
	j.private.Boxes[j.attempt] = id
}

// giveBack: the attempt is to have a sandbox of its own. What could not be removed of the
// borrowed one is removed at the run's end.
func (j *job) giveBack(removed bool) {
	id := j.private.Boxes[j.attempt]
	delete(j.private.Boxes, j.attempt)
	j.leased(lease{})
	j.cold = true
	if removed {
		j.service.pool.forget(map[int]string{0: id})
		return
	}
	j.private.Boxes[-j.attempt] = id
}

// refuse gives a sandbox back whose program never got the run: nothing has happened yet.
func (j *job) refuse(ctx context.Context) error {
	const reason = "the waiting sandbox ended before its run began"
	j.service.logger.Warn(reason, "run", j.id, "sandbox", j.private.Boxes[j.attempt])
	j.giveBack(j.discard(ctx))
	j.private.Refused = j.log.seen(j.attempt)
	return j.enter(api.Failed, reason)
}

// launchCold starts a container for the attempt.
func (j *job) launchCold(ctx context.Context) error {
	defer j.service.pool.starts()()
	if err := j.enter(api.Starting, ""); err != nil {
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
	if container == "" {
		if container, err = j.borrowed(ctx); err != nil {
			return "", err
		}
	}
	if err := j.removeOthers(ctx, j.attempt); err != nil {
		return "", err
	}
	if container == "" && j.record.State == api.Running {
		return "", vanished(nil)
	}
	j.troubled = false
	return container, nil
}

// removeOthers removes what the engine has of other attempts than one, the sandboxes that
// they borrowed included; there is no attempt 0.
func (j *job) removeOthers(ctx context.Context, one int) error {
	exec := j.service.exec
	err := runtime.RemoveOthers(ctx, exec.engine, j.id, exec.owner, one)
	for attempt, id := range j.private.Boxes {
		if attempt != one {
			err = errors.Join(err, runtime.RemoveAll(ctx, exec.engine, id, exec.owner))
		}
	}
	return err
}

// borrowed finds the container of a waiting sandbox that an earlier process made the
// attempt's. Where that process had not come so far, it goes, and the attempt begins anew.
func (j *job) borrowed(ctx context.Context) (container string, err error) {
	id := j.private.Boxes[j.attempt]
	if id == "" {
		return "", nil
	}
	exec := j.service.exec
	refs, err := runtime.Find(ctx, exec.engine, id, exec.owner)
	if err != nil || len(refs) == 0 {
		return "", err
	}
	if j.record.State == api.Running || j.furnished() {
		return refs[0].ID, nil
	}
	err = runtime.RemoveAll(ctx, exec.engine, id, exec.owner)
	j.giveBack(err == nil)
	return "", err
}

// furnished gives a borrowed sandbox its input, if it has become the attempt's at all. A
// program that has posted its result may ask for another one's, and gets none.
func (j *job) furnished() bool {
	layout := runtime.OpenLayout(j.dir(), "")
	if _, err := os.Stat(layout.Dir); err != nil {
		return false
	}
	if _, err := os.Stat(layout.Posted()); err == nil && j.lease.lasts() {
		return true
	}
	return errors.Join(layout.LinkInputs(j.inputs), layout.WriteInput(j.ready.input.JSON())) == nil
}
