package pool

import (
	"errors"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

func TestWhatTheEngineCouldNotRemoveOfThePoolGoesLater(t *testing.T) {
	away := fault.New(fault.Unavailable, "the engine is away")
	t.Run("of a sandbox that was not wanted any more", func(t *testing.T) {
		y := newYard(t, map[string]int{"worker": 1}, Options{Size: 8})
		waiting := y.stocked("worker", 1).Waiting[0]
		y.breaks("Remove", away)
		y.set(func() { y.wants = nil })
		y.survey()
		y.within("it was to be removed", func() bool { return y.isLeft(waiting.ID) })
		if len(y.containers(waiting.ID)) != 1 {
			t.Error("it was removed by an engine that is away")
		}
		y.breaks("Remove", nil)
		y.wantNone(waiting.ID)
	})
	t.Run("of one that could not be started", func(t *testing.T) {
		y := newYard(t, nil, Options{Size: 8})
		y.breaks("Start", away)
		y.breaks("Remove", away)
		id := y.leaving()
		y.breaks("Remove", nil)
		y.wantNone(id)
	})
	t.Run("of one whose creation was never answered", func(t *testing.T) {
		y := newYard(t, nil, Options{Size: 8})
		y.breaks("Create", away)
		id := y.leaving()
		y.breaks("Create", nil)
		y.late(id, owner)
		y.wantNone(id)
	})
	t.Run("and nothing of somebody else's", func(t *testing.T) {
		y := newYard(t, nil, Options{Size: 8})
		y.breaks("Create", away)
		id := y.leaving()
		y.breaks("Create", nil)
		y.late(id, "another")
		y.pool.sweepLeft(t.Context())
		if len(y.containers(id)) != 1 {
			t.Error("it is gone")
		}
	})
}

func TestWhatMayBeLeftAfterAnError(t *testing.T) {
	for _, c := range []struct {
		err    error
		leaves bool
	}{
		{nil, false},
		{errNo, false},
		{ErrNotReady, false},
		{fault.New(fault.NotFound, "no image"), false},
		{fault.New(fault.Build, "no"), false},
		{fault.New(fault.Unavailable, "away"), true},
		{fault.New(fault.Deadline, "slow"), true},
		{errors.Join(ErrNotReady, runtime.ErrLeftBehind), true},
	} {
		if mayBeLeft(c.err) != c.leaves {
			t.Errorf("%v: %v", c.err, !c.leaves)
		}
	}
}

// wantNone returns when the engine has nothing of the sandbox.
func (y *yard) wantNone(id string) {
	y.t.Helper()
	y.within("nothing of sandbox "+id+" is left", func() bool { return len(y.containers(id)) == 0 })
}

// leaving has a unit want a sandbox, and returns the id of the one that can't be started.
func (y *yard) leaving() (id string) {
	y.t.Helper()
	y.set(func() { y.wants = map[string]int{"worker": 1} })
	y.survey()
	y.within("a sandbox could not be started", func() bool {
		y.pool.mu.Lock()
		defer y.pool.mu.Unlock()
		for id = range y.pool.left {
			return true
		}
		return false
	})
	return id
}

// late makes the container of a creation that nobody waits for any more.
func (y *yard) late(id, owner string) {
	y.t.Helper()
	labels := map[string]string{runtime.LabelRun: id, runtime.LabelOwner: owner}
	if _, err := y.engine.Create(y.t.Context(), runtime.ContainerSpec{Name: "late", Image: image.ID, Labels: labels}); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) isLeft(id string) bool {
	y.pool.mu.Lock()
	defer y.pool.mu.Unlock()
	_, left := y.pool.left[id]
	return left
}
