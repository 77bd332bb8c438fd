package runtime

import (
	"context"
	"sync"
	"time"
)

const (
	watchInterval = 500 * time.Millisecond
	layerInterval = 2 * time.Second // the engine is asked for it
	// watchRest and layerRest are how many times as long as a look took the rest after it is,
	// where that is more: whatever a program makes there, the host gives little for it.
	watchRest, layerRest = 4, 2
)

// Layers is an engine that tells how much a container has written to its layer: the part of
// its root file system that is its own.
type Layers interface {
	// LayerBytes returns the size of the layer's files. Files that were deleted don't count.
	LayerBytes(ctx context.Context, id string) (int64, error)
}

// watchDisk ends the run with a *LimitError as soon as it has written more than its limit to
// the host's disk, and with a *DiskFullError where it must make room for others. A bind mount
// has no quota. It returns when ctx ends.
func (s *Sandbox) watchDisk(ctx context.Context, end context.CancelCauseFunc) {
	defer s.disks.forget(s)
	var looks sync.WaitGroup
	defer looks.Wait()
	if s.writable {
		looks.Go(func() { s.watchLayer(ctx, end) })
	}
	if s.layout.remote != nil {
		s.layout.remote.watchDisk(ctx, s.limits.DiskBytes, end)
		return
	}
	every(ctx, lookPace{watchInterval, watchRest}, func(seen *processes) error { return s.look(ctx, seen) },
		s.processes, end)
}

// look measures the run's directories once.
func (s *Sandbox) look(ctx context.Context, seen *processes) error {
	used, over := s.layout.measure(ctx, s.limits.DiskBytes, seen.heldOn(ctx, s.layout.Dir))
	if over != nil {
		return over
	}
	if full := s.disks.tell(s, max(used, seen.bytesWritten())); full != nil {
		return full
	}
	return nil
}

// watchLayer watches the root file system of a sandbox that may write to it.
func (s *Sandbox) watchLayer(ctx context.Context, end context.CancelCauseFunc) {
	layers, ok := s.engine.(Layers)
	if !ok {
		return
	}
	every(ctx, lookPace{layerInterval, layerRest}, func(seen *processes) error {
		used := sum(seen.heldElsewhere(ctx, s.layout.Dir)) // before the others, so that none counts twice
		if size, err := layers.LayerBytes(ctx, s.id); err == nil {
			used += size
		}
		if used > s.limits.DiskBytes {
			return overLayer(s.limits.DiskBytes)
		}
		return nil
	}, s.processes, end)
}

// processes are those of the sandbox; nil where they can't be seen.
func (s *Sandbox) processes(ctx context.Context) *processes {
	if s.layout.remote != nil {
		return nil
	}
	state, err := s.engine.Inspect(ctx, s.id)
	if err != nil {
		return nil
	}
	return findProcesses(state, s.id)
}

// lookPace is the time between two looks: at least pause, and rest times as long as one took.
type lookPace struct{ pause, rest time.Duration }

// every looks again and again, until there is a reason to end the run or ctx ends.
func every(
	ctx context.Context, p lookPace, look func(*processes) error,
	find func(context.Context) *processes, end context.CancelCauseFunc,
) {
	timer := time.NewTimer(p.pause)
	defer timer.Stop()
	var seen *processes
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		if first {
			seen = find(ctx)
		}
		if reason := look(seen); reason != nil {
			end(reason)
			return
		}
		timer.Reset(max(p.pause, p.rest*time.Since(began)))
	}
}
