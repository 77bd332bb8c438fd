package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	// readyTime bounds the time from a sandbox's start until it waits for a run.
	readyTime = 30 * time.Second
	// readyPoll is how often Start checks meanwhile whether the sandbox is alive.
	readyPoll = 10 * time.Millisecond
)

// ErrNotReady is the error of a sandbox that didn't come to wait for a run.
var ErrNotReady = errors.New("the sandbox ended, or didn't ask for a run in time")

// ErrBuilding is the error of a sandbox whose image is being built.
var ErrBuilding = errors.New("the image is being built")

// Sandbox is a sandbox that was started before its run is known. At most one run has it at a
// time. Where its unit allows reuse, it waits for another run afterwards.
type Sandbox struct {
	ID     string // in the place of a run's, in its labels
	Key    string // of the unit's content
	Loaded bool   // the program is loaded and asks for a run; else the init waits before it
	Image  api.ImageRef
	Spec   runtime.Spec
	Layout runtime.Layout

	Runtime *runtime.Sandbox
	Log     *runtime.Log
	Lines   *HeldLog
	Since   time.Time // it waits
	born    time.Time
	spoiled atomic.Bool // its program does more than it may while it waits
	meter   reading     // under the pool's lock

	Runs int    // that it may serve
	Had  int    // of which it has had so many
	Last string // the latest of them

	API    *capsuleapi.Dispatcher
	Stop   context.CancelFunc // of its API
	Served chan struct{}      // closed when the API has ended
}

// NewSandbox returns a sandbox for which nothing is started.
func NewSandbox(id, key string, loaded bool) *Sandbox {
	return &Sandbox{ID: id, Key: key, Loaded: loaded, Lines: newHeldLog()}
}

// Starter starts a container from a spec.
type Starter func(
	ctx context.Context, spec runtime.Spec, layout runtime.Layout, log *runtime.Log,
) (*runtime.Sandbox, error)

// Start serves the sandbox's API until life ends, starts its container, and returns when it
// waits for a run. After an error nothing of it is left.
func (s *Sandbox) Start(ctx, life context.Context, start Starter, logger *slog.Logger) error {
	if err := s.start(ctx, life, start, logger); err != nil {
		return errors.Join(err, s.discard(ctx))
	}
	s.born = time.Now()
	s.Since = s.born
	return nil
}

func (s *Sandbox) start(ctx, life context.Context, start Starter, logger *slog.Logger) (err error) {
	if err := s.serve(life, logger); err != nil {
		return err
	}
	s.Log = runtime.NewLog(s.Spec.Limits.LogBytes, s.Lines.add)
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	// a start that is broken off leaves a container
	started, stop := context.WithTimeout(context.WithoutCancel(ctx), readyTime)
	defer stop()
	defer context.AfterFunc(started, s.Lines.drop)() // else a start that fails would wait for a flood's end
	if s.Runtime, err = start(started, s.Spec, s.Layout, s.Log); err != nil {
		return err
	}
	return s.await(ctx)
}

// serve opens the capsule API, which has no run yet.
func (s *Sandbox) serve(life context.Context, logger *slog.Logger) error {
	listener, err := s.Layout.Listen(life)
	if err != nil {
		return fmt.Errorf("capsule api: %w", err)
	}
	ctx, stop := context.WithCancel(life)
	s.API, s.Stop, s.Served = capsuleapi.NewDispatcher(logger), stop, make(chan struct{})
	go func() {
		defer close(s.Served)
		if err := capsuleapi.Serve(ctx, listener, s.API, logger); err != nil {
			logger.Warn("capsule api ended badly", "sandbox", s.ID, fault.LogAttr(err))
		}
	}()
	return nil
}

// await returns when the sandbox waits for a run.
func (s *Sandbox) await(ctx context.Context) error {
	ready := s.Runtime.Ready()
	if s.Loaded {
		ready = s.API.Waiting()
	}
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for s.Runtime.Running() {
		select {
		case <-ready:
			return nil
		case <-tick.C:
		case <-ctx.Done():
			return ErrNotReady
		}
	}
	return ErrNotReady
}

// Ready reports whether a run could have the sandbox now.
func (s *Sandbox) Ready() bool {
	return s.Runtime.Running() && !s.spoiled.Load() && (!s.Loaded || s.API.Live())
}

// close ends the API of a sandbox that nobody acquired.
func (s *Sandbox) close() {
	s.Lines.drop()
	if s.Stop != nil {
		s.Stop()
		<-s.Served
	}
}

// discard removes everything of a sandbox. What the engine can't remove now is removed by its
// label later, at the latest at the next start of the server.
func (s *Sandbox) discard(ctx context.Context) error {
	s.close()
	var err error
	if s.Runtime != nil {
		err = s.Runtime.Remove(ctx)
	}
	return errors.Join(err, safefs.RemoveTree(s.Layout.Dir))
}

// Discard removes everything of a sandbox that a run acquired and could not use.
func (s *Sandbox) Discard(ctx context.Context) error { return s.discard(ctx) }

// Slot returns the slot of the sandbox's next run.
func (s *Sandbox) Slot() ReuseSlot {
	if s.Runs <= 1 {
		return ReuseSlot{}
	}
	return ReuseSlot{Number: s.Had + 1, Remaining: s.Runs - s.Had - 1, Behind: s.Last, Told: true}
}

// ReuseSlot is the place of a run in a container that serves several runs, one after the
// other. The zero slot stands for a container that serves one run.
type ReuseSlot struct {
	Number    int    `json:"number,omitempty"`    // of the run in its container, from 1
	Remaining int    `json:"remaining,omitempty"` // runs that may follow it there
	Behind    string `json:"behind,omitempty"`    // the run before it; "" for the first

	Told bool `json:"-"` // its program hears of it from this process
}

// Continues reports whether the container goes on when the run has posted its result.
func (s ReuseSlot) Continues() bool { return s.Remaining > 0 }

// Share assigns a log to the run.
func (s ReuseSlot) Share(log *runtime.Log, run string) {
	if s.Number > 0 {
		log.BeginShare(capsuleapi.EndLine(run))
	}
}
