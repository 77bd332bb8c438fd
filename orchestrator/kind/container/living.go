package container

import (
	"context"
	"errors"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// living is the container of a session whose program lives on between its turns.
type living struct {
	id     string // of the container
	adopt  func(context.Context, *runtime.Log) (*runtime.Sandbox, error)
	layout runtime.Layout
	dialog agent.Dialog
	wire   *wire

	logBytes int64 // that are kept of the log

	stop  context.CancelCauseFunc // ends the container, or with ErrDetach the watch over it
	ended chan struct{}           // closed when the program has ended, or the watch has
	end   runtime.End             // set before
	err   error                   // likewise

	mu      sync.Mutex
	sandbox *runtime.Sandbox // replaced by watch alone, until that has ended
	log     *runtime.Log     // likewise
	turn    *turn            // that goes on; nil: none
	lines   run.Lines        // of the log, since the container began
}

// watch waits for the program's end, and bounds what it writes meanwhile. The program notices
// nothing of the engine's absence: its streams are files.
func (v *living) watch(c *Containers) {
	ctx, stop := context.WithCancelCause(context.Background())
	v.stop, v.ended = stop, make(chan struct{})
	go func() { // remove and release wait for it
		defer close(v.ended)
		for {
			v.end, v.err = v.sandbox.Wait(ctx)
			if ctx.Err() != nil || !errors.Is(v.err, runtime.ErrUnreachable) {
				return
			}
			if v.err = v.rejoin(ctx, c); v.err != nil {
				return
			}
		}
	}()
}

// adoptsAs says how the container is taken over.
func (v *living) adoptsAs(c *Containers, id string, spec runtime.Spec) {
	v.id = id
	v.adopt = func(ctx context.Context, log *runtime.Log) (*runtime.Sandbox, error) {
		return runtime.Adopt(ctx, c.engine, id, spec, v.layout, log)
	}
}

// rejoin adopts the container anew when the engine answers, and goes on in its log.
func (v *living) rejoin(ctx context.Context, c *Containers) error {
	c.logger.Warn("engine away, container is adopted again", "container", v.id, fault.LogAttr(v.err))
	v.sandbox.Release()
	for {
		if _, err := c.awaitEngine(ctx); err != nil {
			return err
		}
		log := runtime.NewLog(v.logBytes, v.note)
		v.mu.Lock()
		log.Skip(v.lines.Stdout, v.lines.Stderr)
		v.mu.Unlock()
		sandbox, err := v.adopt(ctx, log)
		if err == nil {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.sandbox, v.log = sandbox, log
			return nil
		}
		if !errors.Is(err, runtime.ErrUnreachable) {
			return err
		}
		_ = pause.For(ctx, lookAgain) // an end is seen above
	}
}

// logged returns how much the program has logged.
func (v *living) logged() (bytes int64, truncated bool) {
	v.mu.Lock()
	log := v.log
	v.mu.Unlock()
	return log.Bytes()
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
