package runtime

import (
	"context"
	"errors"
	"fmt"
)

// ErrDetach is the cause of a context whose end leaves the sandboxes alone: their containers
// go on, for the next process to Adopt.
var ErrDetach = errors.New("detached from the sandbox")

// Adopt takes over a container that an earlier process created, or this one before the engine was
// ErrUnreachable. It starts a container that was never started. A program never runs twice: of a
// container that has ended, Wait returns the end. The log gets the output of a Durable spec from
// its beginning (see Log.Skip), else from here on. After an error the container is as it was.
func Adopt(ctx context.Context, engine Containers, id string, spec Spec, layout Layout, log *Log) (*Sandbox, error) {
	s := newSandbox(engine, spec, layout)
	s.id, s.disk.id = id, id
	if err := s.adopt(ctx, log, spec.Durable); err != nil {
		s.Release()
		return nil, err
	}
	return s, nil
}

// ReadLog reads the output of a container from its beginning until it ends or ctx does. It is
// for a container that nobody waits for any more.
func ReadLog(ctx context.Context, engine Containers, id string, log *Log) error {
	streams, err := engine.Logs(ctx, id)
	if err != nil {
		return fmt.Errorf("read log of sandbox: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = streams.Close() })() // nobody reads them any more
	log.drain(streams)
	if ctx.Err() == nil {
		log.finish()
	}
	return streams.Close()
}

// adopt subscribes before it inspects: the subscription tells of an exit in between.
func (s *Sandbox) adopt(ctx context.Context, log *Log, durable bool) error {
	life, err := s.subscribe(ctx)
	if err != nil {
		return err
	}
	state, err := s.engine.Inspect(ctx, s.id)
	switch {
	case err != nil:
	case state.Status == StatusCreated:
		state, err = s.startCreated(ctx)
	case !state.Running:
		exits := make(chan Exit, 1)
		exits <- Exit{Code: state.ExitCode}
		s.exit = exits
	}
	if err != nil {
		return fmt.Errorf("adopt sandbox: %w", err)
	}
	s.startedAt = state.StartedAt
	if err := s.readOn(ctx, log, durable); err != nil {
		return fmt.Errorf("read log of sandbox: %w", err)
	}
	if len(s.exit) == 0 {
		s.openTunnel(life)
	}
	return nil
}

// readOn reads the log of an adopted container, as far as the engine has it.
func (s *Sandbox) readOn(ctx context.Context, log *Log, durable bool) error {
	read := s.engine.Logs
	if !durable {
		read = s.engine.Attach
	}
	if !durable && len(s.exit) > 0 { // nothing more comes
		close(s.drained)
		return nil
	}
	streams, err := read(ctx, s.id)
	if err == nil {
		s.drain(streams, log)
	}
	return err
}

// startCreated starts a container that the earlier process had not started yet. That
// process's call may still be on its way: the engine does only one of two starts at once. If
// ours comes after a whole run, the init doesn't run the program again.
func (s *Sandbox) startCreated(ctx context.Context) (ContainerState, error) {
	if err := s.layout.remote.fillOnce(ctx); err != nil {
		return ContainerState{}, err
	}
	if err := s.engine.Start(ctx, s.id); err != nil {
		return ContainerState{}, err
	}
	return s.engine.Inspect(ctx, s.id)
}

func detached(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrDetach) }
