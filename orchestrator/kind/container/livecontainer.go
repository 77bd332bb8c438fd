package container

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// liveContainer is the container of a session whose program lives on between its turns.
type liveContainer struct {
	id      string // of the container
	adopt   func(context.Context, *runtime.Log) (*runtime.Sandbox, error)
	layout  runtime.Layout
	dialog  agent.Dialog
	journal *turnJournal

	logBytes int64 // that are kept of the log

	stop  context.CancelCauseFunc // ends the container, or with ErrDetach the watch over it
	ended chan struct{}           // closed when the program has ended, or the watch has
	end   runtime.End             // set before
	err   error                   // likewise

	mu      sync.Mutex
	sandbox *runtime.Sandbox // replaced by watch alone, until that has ended
	log     *runtime.Log     // likewise
	turn    *run.Run         // that goes on; nil: none
	lines   run.Lines        // of the log, since the container began
}

// watch waits for the program's end, and bounds what it writes meanwhile. The program notices
// nothing of the engine's absence: its streams are files.
func (v *liveContainer) watch(m *machine) {
	ctx, stop := context.WithCancelCause(context.Background())
	v.stop, v.ended = stop, make(chan struct{})
	go func() { // remove and release wait for it
		defer close(v.ended)
		for {
			v.end, v.err = v.sandbox.Wait(ctx)
			if ctx.Err() != nil || !errors.Is(v.err, runtime.ErrUnreachable) {
				return
			}
			if v.err = v.rejoin(ctx, m); v.err != nil {
				return
			}
		}
	}()
}

// adoptsAs says how the container is taken over.
func (v *liveContainer) adoptsAs(m *machine, id string, spec runtime.Spec) {
	v.id = id
	v.adopt = func(ctx context.Context, log *runtime.Log) (*runtime.Sandbox, error) {
		return runtime.Adopt(ctx, m.engine, id, spec, v.layout, log)
	}
}

// rejoin adopts the container anew when the engine answers, and goes on in its log.
func (v *liveContainer) rejoin(ctx context.Context, m *machine) error {
	m.logger.Warn("engine away, container is adopted again", "container", v.id, fault.LogAttr(v.err))
	v.sandbox.Release()
	for {
		if _, err := m.await(ctx); err != nil {
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
func (v *liveContainer) logged() (bytes int64, truncated bool) {
	v.mu.Lock()
	log := v.log
	v.mu.Unlock()
	return log.Bytes()
}

// hasEnded reports whether the program can't have another turn.
func (v *liveContainer) hasEnded() bool { return pause.Over(v.ended) }

// note takes a line of the program's stderr. What it writes between two turns is nobody's.
func (v *liveContainer) note(line runtime.LogLine) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lines.Count(line.Stream)
	if v.turn != nil {
		v.turn.Log(line)
	}
}

// setTurn has a turn hear the log from now on; nil: none does. It returns how many lines came
// before.
func (v *liveContainer) setTurn(turn *run.Run) (before run.Lines) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.turn = turn
	return v.lines
}

// errSessionEnds is why the container of a session is stopped.
var errSessionEnds = errors.New("the session's container is not needed any more")

// remove ends the program and removes the container.
func (v *liveContainer) remove(ctx context.Context) error {
	v.disconnect()
	v.stop(errSessionEnds)
	<-v.ended
	return v.sandbox.Remove(ctx)
}

// release leaves the container to the next process.
func (v *liveContainer) release() {
	v.disconnect()
	v.stop(runtime.ErrDetach)
	<-v.ended
	v.sandbox.Release()
}

// disconnect ends the talk with the program. Nothing is kept or written after it.
func (v *liveContainer) disconnect() {
	v.journal.cut()
	v.dialog.Close()
}

// idleTime is how long a container lives on without a turn where agent.yaml doesn't say.
const idleTime = 30 * time.Minute

// talker returns the configuration of a unit with sessions, or whose runs are one turn of a
// dialog; nil of another one.
func talker(u *unit.Unit) *agent.Config {
	if c, ok := u.Definition.(*capsule.Capsule); ok && c.Talks() {
		return c.Wrapped
	}
	return nil
}

// resumes reports whether a session goes on in a new container. Without a protocol each turn has
// one of its own, and what the program keeps in its home comes along.
func resumes(config *agent.Config) bool {
	return len(config.Resume) > 0 || config.Protocol == agent.ACP || !config.Session.KeepAlive
}

// livings are the containers of sessions whose programs live on between their turns.
type livings struct {
	machine *machine
	byID    sync.Map // of *liveContainer, by session
}

// of returns the container of a session that this process has; nil: none.
func (l *livings) of(session string) *liveContainer {
	v, _ := l.byID.Load(session)
	lives, _ := v.(*liveContainer)
	return lives
}

// add keeps the container of a session.
func (l *livings) add(session string, v *liveContainer) { l.byID.Store(session, v) }

// end ends the container of a session. Its program gets a SIGTERM first.
func (l *livings) end(ctx context.Context, session string) error {
	m := l.machine
	v, lives := l.byID.LoadAndDelete(session)
	if !lives {
		return runtime.RemoveAll(ctx, m.engine, session, m.home.Owner)
	}
	if err := v.(*liveContainer).remove(ctx); err != nil {
		return errors.Join(err, runtime.RemoveAll(ctx, m.engine, session, m.home.Owner))
	}
	return nil
}

// release leaves the containers to the next process.
func (l *livings) release() {
	for _, v := range l.byID.Range {
		v.(*liveContainer).release()
	}
	l.byID.Clear()
}
