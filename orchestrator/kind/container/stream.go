package container

import (
	"context"
	"io"
	"sync"

	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// Stream is how an Agentic Unit stands between others: its stdin is what another writes at
// the same time, and so is its stdout for the next one. It isn't for an engine elsewhere.
type Stream struct {
	// Stdin is the JSON of the unit before; nil is the request's own stdin. It is closed
	// when the unit has ended.
	Stdin io.ReadCloser
	// Stdout gets what the unit prints, all of it before its run is over, and isn't closed:
	// whether it is a result is known when the run is. nil is nobody.
	Stdout io.Writer
}

// streamName is the pipe in /io/input.
const streamName = "stream"

// feeds reports whether the unit's stdin comes from another one.
func (s *Stream) feeds() bool { return s != nil && s.Stdin != nil }

// prepare makes the pipe, for a unit that takes what all units print.
func (s *Stream) prepare(card *au.Card, layout runtime.Layout) error {
	const printed = "application/json"
	if !card.Accepts(printed) {
		return fault.New(fault.Input, "stdin is %s, which %s doesn't take", printed, card.Name).
			WithHint("its model card says what it takes: %s", mediaTypes(card.Inputs))
	}
	return layout.MakePipe(streamName)
}

// join passes on what comes and goes, until the function that it returns is called; that
// returns when all is passed on.
func (s *Stream) join(ctx context.Context, layout runtime.Layout) (end func()) {
	if s == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the unit's own end is what counts
	var both sync.WaitGroup
	if s.Stdin != nil {
		both.Go(func() { _ = layout.Feed(ctx, streamName, s.Stdin) }) // who wrote it knows
	}
	if s.Stdout != nil {
		both.Go(func() { _ = layout.FollowStdout(ctx, s.Stdout) }) // who reads it knows
	}
	return func() {
		cancel()
		if s.Stdin != nil {
			_ = s.Stdin.Close()
		}
		both.Wait()
	}
}
