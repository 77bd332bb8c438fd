package runtime

import (
	"context"
	"errors"
	"fmt"
)

// ErrDetach is the cause of a context that ends a process and not its sandboxes: cancel
// with it, and their containers go on for the next process to Adopt.
var ErrDetach = errors.New("detached from the sandbox")

// Adopt takes over a container that an earlier process created from a Durable spec. One
// that was never started is started now, one that runs is waited for, and of one that has
// ended the end is known: its program never runs twice. The log gets the output from its
// beginning; see Log.Skip. After an error the container is as it was.
func Adopt(ctx context.Context, engine Containers, id string, spec Spec, layout Layout, log *Log) (*Sandbox, error) {
	s := newSandbox(engine, spec, layout)
	s.id = id
	if err := s.adopt(ctx, log); err != nil {
		s.Release()
		return nil, err
	}
	return s, nil
}

// adopt subscribes before it looks: an exit in between comes by the subscription.
func (s *Sandbox) adopt(ctx context.Context, log *Log) error {
	if err := s.subscribe(ctx); err != nil {
		return err
	}
	state, err := s.engine.Inspect(ctx, s.id)
	switch {
	case err != nil:
	case state.Status == StatusCreated:
		state, err = s.startCreated(ctx)
	case !state.Running:
		s.exit = known(Exit{Code: state.ExitCode})
	}
	if err != nil {
		return fmt.Errorf("adopt sandbox: %w", err)
	}
	s.startedAt = state.StartedAt
	streams, err := s.engine.Logs(ctx, s.id)
	if err != nil {
		return fmt.Errorf("read log of sandbox: %w", err)
	}
	s.drain(streams, log)
	if len(s.exit) == 0 {
		s.openTunnel()
	}
	return nil
}

// startCreated starts what the earlier process had yet to start, or was about to: its
// call may still be on its way. Of two starts at once the engine does one, and should
// ours come when a whole run is over, the init doesn't run the program again.
func (s *Sandbox) startCreated(ctx context.Context) (ContainerState, error) {
	if err := s.layout.refillVolumes(ctx); err != nil {
		return ContainerState{}, err
	}
	if err := s.engine.Start(ctx, s.id); err != nil {
		return ContainerState{}, err
	}
	return s.engine.Inspect(ctx, s.id)
}

// known returns an exit as a subscription would.
func known(exit Exit) <-chan Exit {
	exits := make(chan Exit, 1)
	exits <- exit
	return exits
}

func detached(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrDetach) }
