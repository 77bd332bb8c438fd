package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/fault"
)

const (
	// stopGrace is what a program has between SIGTERM and SIGKILL.
	stopGrace = 2 * time.Second
	// cleanupTime bounds what has to be done after a run's own time is over.
	cleanupTime = 30 * time.Second
)

// Sandbox is a started container of one run, or of one after the other: see Claim.
type Sandbox struct {
	engine Containers
	id     string
	layout Layout
	limits Limits

	streams   *Streams
	exit      <-chan Exit
	held      context.Context    //nolint:containedctx // its end is release: what goes on until then belongs to no call
	release   context.CancelFunc // of the exit's subscription
	tunnels   sync.WaitGroup     // open to the container, until released
	drained   chan struct{}      // closed when both streams have ended
	heard     bool               // Spec.Control
	control   *control           // nil where the engine is elsewhere, or an earlier process had it
	timings   Timings
	startedAt time.Time
}

// Timings say how long the engine took.
type Timings struct {
	Create time.Duration
	Start  time.Duration
}

// Start makes a sandbox from the spec and starts it. What it made is gone again
// when it returns an error, unless ctx ended with ErrDetach: what has begun is left to be
// adopted then. The run goes on when ctx, which bounds the start, ends.
func Start(ctx context.Context, engine Containers, spec Spec, layout Layout, log *Log) (*Sandbox, error) {
	s := newSandbox(engine, spec, layout)
	if err := s.create(ctx, spec); err != nil {
		return nil, err
	}
	err := s.start(ctx, log)
	switch {
	case err == nil:
		return s, nil
	case detached(ctx):
		s.Release()
		return nil, fmt.Errorf("%w: %w", ErrDetach, err)
	}
	return nil, errors.Join(err, s.Remove(ctx))
}

func newSandbox(engine Containers, spec Spec, layout Layout) *Sandbox {
	return &Sandbox{engine: engine, layout: layout, limits: spec.Limits, heard: spec.Control, drained: make(chan struct{})}
}

// create isn't broken off by ctx: nobody would know the container that it made.
func (s *Sandbox) create(ctx context.Context, spec Spec) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("create sandbox: %w", err)
	}
	if err := s.layout.renewReport(); err != nil {
		return err
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	began := time.Now()
	id, err := s.engine.Create(ctx, spec.container(s.layout))
	if err != nil {
		return errors.Join(fmt.Errorf("create sandbox: %w", err), s.disown(ctx, spec, err))
	}
	s.id, s.timings.Create = id, time.Since(began)
	return nil
}

// disown removes what a creation made whose answer got lost on its way to us.
func (s *Sandbox) disown(ctx context.Context, spec Spec, lost error) error {
	if !fault.Is(lost, fault.Unavailable) && !fault.Is(lost, fault.Deadline) {
		return nil // the engine said no
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	return removeAttempt(ctx, s.engine, spec)
}

func (s *Sandbox) start(ctx context.Context, log *Log) error {
	if err := s.layout.fillVolumes(ctx); err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	began := time.Now()
	if err := s.connect(ctx, log); err != nil {
		return err
	}
	if err := s.engine.Start(ctx, s.id); err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	s.startedAt, s.timings.Start = began, time.Since(began)
	s.openTunnel()
	return nil
}

// connect attaches and subscribes, before the start, so that nothing is missed.
func (s *Sandbox) connect(ctx context.Context, log *Log) (err error) {
	if s.heard && s.layout.remote == nil {
		if s.control, err = s.layout.openControl(ctx); err != nil {
			return err
		}
	}
	var subscribed error
	var both sync.WaitGroup // each asks the engine over a connection of its own
	both.Go(func() { subscribed = s.subscribe(ctx) })
	streams, err := s.engine.Attach(ctx, s.id)
	both.Wait()
	if err != nil {
		return fmt.Errorf("attach to sandbox: %w", err)
	}
	s.drain(streams, log)
	return subscribed
}

func (s *Sandbox) drain(streams *Streams, log *Log) {
	s.streams = streams
	go func() {
		log.drain(streams)
		close(s.drained)
	}()
}

func (s *Sandbox) subscribe(ctx context.Context) (err error) {
	s.held, s.release = context.WithCancel(context.WithoutCancel(ctx))
	if s.exit, err = s.engine.NextExit(s.held, s.id); err != nil {
		return fmt.Errorf("watch sandbox: %w", err)
	}
	return nil
}

// openTunnel lets a container that runs elsewhere reach the capsule API.
func (s *Sandbox) openTunnel() {
	if s.layout.remote != nil {
		s.tunnels.Go(func() { s.layout.remote.keepTunnel(s.held, s.id) })
	}
}

// ID returns the engine's id of the container.
func (s *Sandbox) ID() string { return s.id }

// Timings returns how long the engine took to create and to start.
func (s *Sandbox) Timings() Timings { return s.timings }

// StartedAt returns when the program started: by the engine's clock where the sandbox was
// adopted, and just before, by ours, where this process started it.
func (s *Sandbox) StartedAt() time.Time { return s.startedAt }

// Wait returns when the container has ended and its output is read, or as soon as its
// init has told of a success: see End.Early. When ctx ends
// first, or the run goes over its disk limit, it stops the container, and End.Cause
// says why. When ctx ends with ErrDetach, Wait returns that and the container goes on.
// Any other error is for an engine that doesn't answer any more.
func (s *Sandbox) Wait(ctx context.Context) (End, error) { return s.WaitOr(ctx, nil) }

// WaitOr is Wait, and returns with End.Alive when done is closed: the program has done
// well, and may go on with another run. Every other end comes first where both are there.
func (s *Sandbox) WaitOr(ctx context.Context, done <-chan struct{}) (End, error) {
	watched, end := context.WithCancelCause(ctx)
	var disk sync.WaitGroup
	disk.Go(func() { s.layout.watchDisk(watched, s.limits.DiskBytes, end) })
	defer disk.Wait()
	defer end(nil)
	select {
	case exit := <-s.exit: // what has ended counts, also when its time ran out unwatched
		return s.ended(ctx, exit, nil)
	default:
	}
	for lasts := true; lasts; {
		select {
		case exit := <-s.exit: // perhaps because of what ended ctx, such as calls of its own
			return s.ended(ctx, exit, wanted(watched))
		case <-s.control.success():
			return s.finished(), nil
		case <-done:
			if watched.Err() == nil && s.goesOn() {
				return s.stays(), nil
			}
			done = nil
		case <-watched.Done():
			lasts = false
		}
	}
	cause := context.Cause(watched)
	if errors.Is(cause, ErrDetach) {
		return End{}, fmt.Errorf("wait for sandbox: %w", cause)
	}
	exit, err := s.stop(ctx)
	if err != nil {
		return End{Cause: cause}, err
	}
	return s.ended(ctx, exit, cause)
}

// wanted returns why the container should end, if it should.
func wanted(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ErrDetach) {
		return cause
	}
	return nil
}

// stop ends the container: SIGTERM, SIGKILL after the grace, and a kill of our own
// where the engine's stop failed.
func (s *Sandbox) stop(ctx context.Context) (Exit, error) {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	if err := s.engine.Stop(ctx, s.id, stopGrace); err != nil {
		if err := s.engine.Kill(ctx, s.id); err != nil {
			return Exit{}, fmt.Errorf("stop sandbox: %w", err)
		}
	}
	select {
	case exit := <-s.exit:
		return exit, nil
	case <-ctx.Done():
		return Exit{}, fault.New(fault.Unavailable, "the engine did not say that the container %.12s has ended", s.id)
	}
}

// Remove removes the container, also a running one that nobody waits for, and waits
// for what this sandbox has going on. It works when ctx is over already, and again.
// An error is ErrLeftBehind.
func (s *Sandbox) Remove(ctx context.Context) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	err := s.engine.Remove(ctx, s.id)
	s.Release()
	if err == nil {
		err = s.layout.removeVolumes(ctx)
	}
	return leftBehind(err)
}

// Release lets go of the container without touching it, and waits for what this sandbox
// has going on, except for Wait, which has returned by then. It may be called again.
func (s *Sandbox) Release() {
	if s.release != nil {
		s.release()
	}
	s.tunnels.Wait()
	s.control.close()
	if s.streams != nil {
		_ = s.streams.Close() // nobody reads them any more
		<-s.drained
	}
}

// cleanup returns a context of its own for what must be done also after ctx's end.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
}
