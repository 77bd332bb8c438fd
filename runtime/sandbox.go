package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

const (
	// stopGrace is the time between SIGTERM and SIGKILL.
	stopGrace = 2 * time.Second
	// cleanupTime bounds the work after the end of a run's own time.
	cleanupTime = 30 * time.Second
)

// Sandbox is a started container. It serves one run, or several in turn: see Assign.
type Sandbox struct {
	engine Containers
	id     string
	layout Layout
	disk   *sandboxDisk

	streams   *Streams
	log       *Log // of the streams; nil with a console
	exit      <-chan Exit
	release   context.CancelFunc // ends the exit's subscription and the tunnel
	tunnels   sync.WaitGroup     // the tunnel to the container, and what follows a terminal's size, until released
	drained   chan struct{}      // closed when both streams have ended
	console   *Console           // Spec.Console
	told      bool               // the init tells of the end
	leashed   bool               // ModeStdio
	control   *control           // nil with a remote engine, and after Adopt
	timings   Timings
	startedAt time.Time
}

// Timings say how long the engine took.
type Timings struct {
	Create time.Duration
	Start  time.Duration
}

// Start makes a sandbox from the spec and starts it. After an error it has removed what it
// made, except where ctx ended with ErrDetach, or the engine is ErrUnreachable: whoever finds
// the container by its labels adopts or removes it then. ctx bounds the start only, not the run.
func Start(ctx context.Context, engine Containers, spec Spec, layout Layout, log *Log) (*Sandbox, error) {
	if err := spec.check(layout.remote != nil); err != nil {
		return nil, err
	}
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
	case errors.Is(err, ErrUnreachable): // the program may run
		s.Release()
		return nil, err
	}
	return nil, errors.Join(err, s.Remove(ctx))
}

func newSandbox(engine Containers, spec Spec, layout Layout) *Sandbox {
	return &Sandbox{
		engine: engine, layout: layout,
		disk: &sandboxDisk{
			engine: engine, layout: layout, limit: spec.Limits.DiskBytes, writable: !spec.ReadOnly, disks: spec.Disks,
		},
		console: spec.Console, told: spec.Mode.tells(), leashed: spec.Mode == ModeStdio, drained: make(chan struct{}),
	}
}

// create goes on when ctx ends: nobody would know the id of the container otherwise.
func (s *Sandbox) create(ctx context.Context, spec Spec) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("create sandbox: %w", err)
	}
	if err := s.layout.resetReport(); err != nil {
		return err
	}
	if spec.Mode == ModeSession {
		if err := makeFeed(s.layout); err != nil {
			return err
		}
	}
	if err := (binds{s.layout, spec}).writeAccount(); err != nil {
		return err
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	began := time.Now()
	id, err := s.engine.Create(ctx, spec.container(s.layout))
	if err != nil {
		return errors.Join(fmt.Errorf("create sandbox: %w", err), s.removeLost(ctx, spec, err))
	}
	s.id, s.disk.id, s.timings.Create = id, id, time.Since(began)
	s.disk.bound()
	return nil
}

// removeLost removes the container of a creation whose answer got lost.
func (s *Sandbox) removeLost(ctx context.Context, spec Spec, lost error) error {
	if errors.Is(lost, ErrUnreachable) || !fault.Is(lost, fault.Unavailable) && !fault.Is(lost, fault.Deadline) {
		return nil // see Start; or the engine refused: there is no container
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	return removeAttempt(ctx, s.engine, spec)
}

func (s *Sandbox) start(ctx context.Context, log *Log) error {
	if err := s.layout.remote.fill(ctx); err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	began := time.Now()
	life, err := s.connect(ctx, log)
	if err != nil {
		return err
	}
	if err := s.engine.Start(ctx, s.id); err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	s.startedAt, s.timings.Start = began, time.Since(began)
	s.openTunnel(life)
	s.followSize(life)
	return nil
}

// connect attaches and subscribes. It is called before the start, so that nothing is missed.
// It returns the context of subscribe.
func (s *Sandbox) connect(ctx context.Context, log *Log) (life context.Context, err error) {
	if s.told && s.layout.remote == nil {
		if s.control, err = openControl(ctx, s.layout, s.console == nil); err != nil {
			return nil, err
		}
	}
	var subscribed error
	var both sync.WaitGroup // each asks the engine over a connection of its own
	both.Go(func() { life, subscribed = s.subscribe(ctx) })
	streams, err := s.attach(ctx)
	both.Wait()
	if err != nil {
		return nil, fmt.Errorf("attach to sandbox: %w", err)
	}
	if s.console != nil {
		s.talk(streams, log)
	} else {
		s.drain(streams, log)
	}
	return life, subscribed
}

// drain reads the streams into the log until both end.
func (s *Sandbox) drain(streams *Streams, log *Log) {
	s.streams, s.log = streams, log
	go func() {
		log.drain(streams)
		close(s.drained)
	}()
}

// subscribe subscribes to the container's exit. It returns the context of the subscription,
// which ends with Release and not with ctx.
func (s *Sandbox) subscribe(ctx context.Context) (life context.Context, err error) {
	life, s.release = context.WithCancel(context.WithoutCancel(ctx))
	if s.exit, err = s.engine.NextExit(life, s.id); err != nil {
		return nil, fmt.Errorf("watch sandbox: %w", err)
	}
	return life, nil
}

// openTunnel lets a container at a remote engine reach the capsule API until life ends.
func (s *Sandbox) openTunnel(life context.Context) {
	if s.layout.remote != nil {
		s.tunnels.Go(func() { s.layout.remote.keepTunnel(life, s.id) })
	}
}

// ID returns the engine's id of the container.
func (s *Sandbox) ID() string { return s.id }

// Timings returns how long the engine took to create and to start.
func (s *Sandbox) Timings() Timings { return s.timings }

// StartedAt returns when the run's time began: by the engine's clock after Adopt, else by
// ours, just before the start of the container or at Assign.
func (s *Sandbox) StartedAt() time.Time { return s.startedAt }

// Wait returns when the container has ended and its output is read, or as soon as its init
// has told of a success: see End.Early. When ctx ends first, or the run goes over its disk
// limit, it stops the container, and End.Cause says why. When ctx ends with ErrDetach, Wait
// returns that and the container goes on. Any other error says that the engine doesn't answer.
func (s *Sandbox) Wait(ctx context.Context) (End, error) { return s.WaitOrPosted(ctx, nil) }

// WaitOrPosted is Wait for a program that may serve several runs. It also returns, with
// End.Reusable, when posted is closed: the program has posted its result then, and waits for
// another run. Where the container ends at the same time, that end counts. With a nil channel
// it is Wait.
func (s *Sandbox) WaitOrPosted(ctx context.Context, posted <-chan struct{}) (End, error) {
	watched, end := context.WithCancelCause(ctx)
	var disk sync.WaitGroup
	disk.Go(func() { s.disk.watch(watched, end) })
	defer disk.Wait()
	defer end(nil)
	select {
	case exit := <-s.exit: // an exit counts, also when the run's time is over by now
		return s.readEnd(ctx, exit, nil)
	case <-s.early():
		return s.earlyEnd(), nil
	default:
	}
	for {
		select {
		case exit := <-s.exit: // perhaps because ctx ended, and with it calls of the program
			return s.readEnd(ctx, exit, stopCause(watched))
		case <-s.early(): // perhaps because ctx ended, as above
			if cause := stopCause(watched); cause != nil {
				return s.stopFor(ctx, cause)
			}
			return s.earlyEnd(), nil
		case <-posted:
			if watched.Err() == nil && s.noEndYet() {
				return s.reusableEnd(), nil
			}
			posted = nil
		case <-watched.Done():
			return s.stopFor(ctx, context.Cause(watched))
		}
	}
}

// early is closed when the init has told of a success. What is talked to ends with its streams.
func (s *Sandbox) early() <-chan struct{} {
	if s.console != nil {
		return nil
	}
	return s.control.succeeds()
}

// stopFor ends the container, unless the cause is ErrDetach, and returns its end.
func (s *Sandbox) stopFor(ctx context.Context, cause error) (End, error) {
	if errors.Is(cause, ErrDetach) {
		return End{}, fmt.Errorf("wait for sandbox: %w", cause)
	}
	exit, err := s.stop(ctx)
	if err != nil {
		return End{Cause: cause}, err
	}
	return s.readEnd(ctx, exit, cause)
}

// stopCause returns why the container should end; nil if it shouldn't, or only this process.
func stopCause(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ErrDetach) {
		return cause
	}
	return nil
}

// stop ends the container: SIGTERM, then SIGKILL after the grace. Where the engine's stop
// fails, it kills the container.
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
		return Exit{}, fault.Wrap(fault.Unavailable, ErrUnreachable,
			"the engine did not say that the container %.12s has ended", s.id)
	}
}

// Remove removes the container, also a running one, and releases the sandbox. It works when
// ctx is over already, and it may be called again. Every error is ErrLeftBehind.
func (s *Sandbox) Remove(ctx context.Context) error {
	ctx, cancel := cleanup(ctx)
	defer cancel()
	err := s.engine.Remove(ctx, s.id)
	s.Release()
	if err == nil {
		s.disk.unbound()
		err = s.layout.remote.remove(ctx)
	}
	return leftBehind(err)
}

// Release stops watching the container, which goes on, and waits for this sandbox's
// goroutines. Wait has returned by then. It may be called again.
func (s *Sandbox) Release() {
	if s.release != nil {
		s.release()
	}
	s.tunnels.Wait()
	s.control.close()
	s.hurryLog()
	if s.streams != nil {
		_ = s.streams.Close() // nobody reads them any more
		<-s.drained
	}
}

// cleanup returns a context for work that must be done also after ctx's end.
func cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), cleanupTime, Silent(cleanupTime))
}
