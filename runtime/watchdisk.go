package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/runtime/quota"
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

// sandboxDisk keeps a sandbox within its disk limit.
//
// sandboxDisk.watch measures a run's disk, processes sees its deleted files, Disks knows the room left.
type sandboxDisk struct {
	engine   Containers
	id       string
	layout   Layout
	limit    int64
	writable bool   // the root file system
	disks    *Disks // Spec.Disks
}

// bound has the kernel keep the sandbox's disk limit, where it can. The program doesn't run yet.
func (d *sandboxDisk) bound() {
	if keeper, ok := d.engine.(ProjectKeeper); !ok || !keeper.KeepsProjects() {
		return
	}
	if project := quota.Of(d.layout.path("io")); project.Given() && d.layout.remote == nil {
		for _, file := range []string{"aod/report", "aod/" + stdoutName} {
			_ = project.Give(d.layout.path(file)) // looking bounds it else
		}
	}
	for _, project := range d.projects() {
		_ = project.Limit(d.limit, watchEntries+ownEntries) // as above
	}
}

// unbound ends what bound began, once the container is gone. A session goes on with what it keeps.
func (d *sandboxDisk) unbound() {
	if project := quota.Of(d.layout.path("io")); project.Given() {
		_ = project.Limit(0, 0) // the next start of a server sweeps
	}
}

// projects are those of the directories that the program can write to. Those that outlive the sandbox have one each,
// and looking bounds what is in all of them together.
func (d *sandboxDisk) projects() (all []quota.Project) {
	for _, dir := range []string{d.layout.path("io"), d.layout.Home, d.layout.Kept} {
		if dir == "" || d.layout.remote != nil {
			continue
		}
		if project := quota.Of(dir); project.Given() {
			all = append(all, project)
		}
	}
	return all
}

// refused returns what the kernel refused to write because of the sandbox's disk limit; nil: nothing.
func (d *sandboxDisk) refused() *LimitError {
	for _, project := range d.projects() {
		switch bytes, files := project.Met(); {
		case bytes:
			return overBytes(d.limit)
		case files:
			return overEntries()
		}
	}
	return nil
}

// watch ends the run with a *LimitError as soon as it has written more than its limit to
// the host's disk, and with a *DiskFullError where it must make room for others. A bind mount
// has no quota. It returns when ctx ends.
func (d *sandboxDisk) watch(ctx context.Context, end context.CancelCauseFunc) {
	defer d.disks.forget(d)
	var looks sync.WaitGroup
	defer looks.Wait()
	if d.writable {
		looks.Go(func() { d.watchLayer(ctx, end) })
	}
	if d.layout.remote != nil {
		d.layout.remote.watchDisk(ctx, d.limit, end)
		return
	}
	every(ctx, lookPace{watchInterval, watchRest}, func(seen *processes) error { return d.look(ctx, seen) },
		d.processes, end)
}

// look measures the run's directories once.
func (d *sandboxDisk) look(ctx context.Context, seen *processes) error {
	m := meter{layout: d.layout, limit: d.limit, held: seen.heldOn(ctx, d.layout.Dir)}
	used, over := m.measure(ctx)
	if over != nil {
		return over
	}
	if full := d.disks.tell(d, max(used, seen.bytesWritten())); full != nil {
		return full
	}
	return nil
}

// watchLayer watches the root file system of a sandbox that may write to it.
func (d *sandboxDisk) watchLayer(ctx context.Context, end context.CancelCauseFunc) {
	layers, ok := d.engine.(Layers)
	if !ok {
		return
	}
	every(ctx, lookPace{layerInterval, layerRest}, func(seen *processes) error {
		used := sum(seen.heldElsewhere(ctx, d.layout.Dir)) // before the others, so that none counts twice
		if size, err := layers.LayerBytes(ctx, d.id); err == nil {
			used += size
		}
		if used > d.limit {
			return overLayer(d.limit)
		}
		return nil
	}, d.processes, end)
}

// processes are those of the sandbox; nil where they can't be seen.
func (d *sandboxDisk) processes(ctx context.Context) *processes {
	if d.layout.remote != nil {
		return nil
	}
	state, err := d.engine.Inspect(ctx, d.id)
	if err != nil {
		return nil
	}
	return findProcesses(state, d.id)
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
