package container

import (
	"context"
	"io"
	"sync"

	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// Stream connects an Agentic Unit with others that run at the same time: it reads what one
// writes, and writes what the next one reads. A remote engine can't do that.
type Stream struct {
	// Stdin is the output of the unit before; nil is the request's own stdin. It is closed
	// when the unit has ended.
	Stdin io.ReadCloser
	// Stdout gets everything that the unit prints, before its run is over. It isn't closed:
	// only the run's end tells whether it is a result. It may be nil.
	Stdout io.Writer
}

// streamName is the pipe in /io/input.
const streamName = "stream"

// feeds reports whether the unit's stdin comes from another unit.
func (s *Stream) feeds() bool { return s != nil && s.Stdin != nil }

// prepare makes the pipe. The unit has to accept JSON, which all units print.
func (s *Stream) prepare(card *au.Card, layout runtime.Layout) error {
	const printed = "application/json"
	if !card.Accepts(printed) {
		return fault.New(fault.Input, "stdin is %s, which %s doesn't take", printed, card.Name).
			WithHint("its model card says what it takes: %s", mediaTypes(card.Inputs))
	}
	return layout.MakePipe(streamName)
}

// join copies both streams until end is called. end returns when everything is copied.
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
