package container

import (
	"context"
	"errors"
	"sync"

	"github.com/agent-on-demand/aod/agent"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/pause"
	"github.com/agent-on-demand/aod/runtime"
)

// living is the container of a session whose program lives on between its turns.
type living struct {
	sandbox *runtime.Sandbox
	layout  runtime.Layout
	log     *runtime.Log
	dialog  agent.Dialog
	wire    *wire

	stop  context.CancelCauseFunc // ends the container, or with ErrDetach the watch over it
	ended chan struct{}           // closed when the program has ended, or the watch has
	end   runtime.End             // set before
	err   error                   // likewise

	mu    sync.Mutex
	turn  *turn     // that goes on; nil: none
	lines run.Lines // of the log, since the container began
}

// watch waits for the program's end, and bounds what it writes meanwhile.
func (v *living) watch() {
	ctx, stop := context.WithCancelCause(context.Background())
	v.stop, v.ended = stop, make(chan struct{})
	go func() { // remove and release wait for it
		defer close(v.ended)
		v.end, v.err = v.sandbox.Wait(ctx)
	}()
}

// hasEnded reports whether the program can't have another turn.
func (v *living) hasEnded() bool { return pause.Over(v.ended) }

// note takes a line of the program's stderr. What it writes between two turns is nobody's.
func (v *living) note(line runtime.LogLine) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if line.Stream == "stdout" {
		v.lines.Stdout++
	} else {
		v.lines.Stderr++
	}
	if v.turn != nil {
		v.turn.Run.Log(line)
	}
}

// hearBy has a turn hear the log from now on; nil: none does. It returns how many lines came
// before.
func (v *living) hearBy(t *turn) (before run.Lines) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.turn = t
	return v.lines
}

// errSessionEnds is why the container of a session is stopped.
var errSessionEnds = errors.New("the session's container is not needed any more")

// remove ends the program and removes the container.
func (v *living) remove(ctx context.Context) error {
	v.hangUp()
	v.stop(errSessionEnds)
	<-v.ended
	return v.sandbox.Remove(ctx)
}

// release leaves the container to the next process.
func (v *living) release() {
	v.hangUp()
	v.stop(runtime.ErrDetach)
	<-v.ended
	v.sandbox.Release()
}

// hangUp ends the talk with the program. Nothing is kept or written after it.
func (v *living) hangUp() {
	v.wire.cut()
	v.dialog.Close()
}
