package container

import (
	"context"

	"github.com/agent-on-demand/aod/runtime"
)

// sharedBuild is one build with all who wait for it.
type sharedBuild struct {
	ref    string
	cancel context.CancelCauseFunc
	ended  chan struct{} // closed when image and err are set
	image  runtime.Image
	err    error

	followers map[*follower]bool // guarded by builds.mu
}

// follower is one who waits for a build.
type follower struct {
	events chan runtime.BuildEvent
	gone   chan struct{} // closed when it waits no more
}

// rest passes on the events that are left when the build has ended.
func (f *follower) rest(progress func(runtime.BuildEvent)) {
	for {
		select {
		case event := <-f.events:
			progress(event)
		default:
			return
		}
	}
}
