package container

import (
	"context"
	"errors"
	"maps"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// BuildOptions bound the builds of images. Zero fields are the defaults.
type BuildOptions struct {
	AtOnce      int           // builds side by side; default half of the CPUs, at least one
	Waiting     int           // builds that may wait for their turn; default 100
	Wait        time.Duration // the longest such wait; default none
	Timeout     time.Duration // of one build, from its turn on; default none
	MemoryBytes int64         // of each container of a build; default the engine's. See runtime.BuildLimits
	CPUs        float64       // likewise
	Settle      time.Duration // how long an image is kept for a unit that is about to be; default a minute
}

func (o BuildOptions) withDefaults() BuildOptions {
	if o.AtOnce == 0 {
		o.AtOnce = max(goruntime.NumCPU()/2, 1)
	}
	if o.Waiting == 0 {
		o.Waiting = 100
	}
	if o.Settle == 0 {
		o.Settle = time.Minute
	}
	return o
}

var (
	errBuildTurn   = errors.New("the build's turn didn't come in time")
	errBuildTime   = errors.New("the build's time is up")
	errNobodyWaits = errors.New("nobody waits for the build any more")
)

// builds are the images that are being built: so many at once, each within its time. All who
// want the same image share one build, which ends with the last of them that is cancelled. It is
// safe for concurrent use.
type builds struct {
	opts    BuildOptions
	turns   *semaphore.Weighted
	tasks   sync.WaitGroup
	figures *buildFigures

	mu      sync.Mutex
	going   map[string]*sharedBuild // by the image's reference
	waiting int                     // of those, for their turn
}

func newBuilds(opts BuildOptions) *builds {
	opts = opts.withDefaults()
	return &builds{
		opts: opts, turns: semaphore.NewWeighted(int64(opts.AtOnce)), going: map[string]*sharedBuild{},
		figures: newBuildFigures(),
	}
}

// buildFunc builds an image and tells of its steps, one after the other.
type buildFunc func(ctx context.Context, tell func(runtime.BuildEvent)) (runtime.Image, error)

// join returns the image that build makes, or that a build of the same reference makes which
// is under way. It calls progress in the caller's goroutine. When ctx ends first, join
// returns the cause at once.
func (b *builds) join(
	ctx context.Context, ref string, progress func(runtime.BuildEvent), build buildFunc,
) (runtime.Image, error) {
	if ctx.Err() != nil {
		return runtime.Image{}, context.Cause(ctx)
	}
	shared, me, err := b.enter(ctx, ref, build)
	if err != nil {
		return runtime.Image{}, err
	}
	defer b.leave(ctx, shared, me)
	for {
		select {
		case event := <-me.events:
			progress(event)
		case <-shared.ended:
			me.rest(progress)
			return shared.image, shared.err
		case <-ctx.Done():
			return runtime.Image{}, context.Cause(ctx)
		}
	}
}

// references returns the references of the images that are being built.
func (b *builds) references() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.going))
}

// enter makes the caller one who waits for an image. It begins the build if there is none.
func (b *builds) enter(ctx context.Context, ref string, build buildFunc) (*sharedBuild, *follower, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	shared := b.going[ref]
	if shared == nil {
		if b.waiting >= b.opts.Waiting {
			return nil, nil, fault.New(fault.Busy, "%d images wait to be built already", b.opts.Waiting).
				WithHint("try again later; the setting `builds` says how many are built at once")
		}
		shared = b.begin(ctx, ref, build)
	}
	me := &follower{events: make(chan runtime.BuildEvent, 64), gone: make(chan struct{})}
	shared.followers[me] = true
	return shared, me, nil
}

// begin starts a build, which outlives the run that asked for it first. It is called with the
// lock held.
func (b *builds) begin(ctx context.Context, ref string, build buildFunc) *sharedBuild {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	shared := &sharedBuild{ref: ref, cancel: cancel, ended: make(chan struct{}), followers: map[*follower]bool{}}
	b.going[ref] = shared
	b.waiting++
	b.tasks.Go(func() {
		defer cancel(nil)
		shared.image, shared.err = b.runBuild(ctx, shared, build)
		b.mu.Lock()
		b.forget(shared)
		b.mu.Unlock()
		close(shared.ended)
	})
	return shared
}

// runBuild waits for the build's turn and builds.
func (b *builds) runBuild(
	ctx context.Context, shared *sharedBuild, build buildFunc,
) (image runtime.Image, err error) {
	err = b.await(ctx)
	b.mu.Lock()
	b.waiting--
	b.mu.Unlock()
	if err != nil {
		b.figures.ended(time.Time{}, context.Cause(ctx), err)
		return runtime.Image{}, err
	}
	defer b.turns.Release(1)
	turn := time.Now()
	defer func() { b.figures.ended(turn, context.Cause(ctx), err) }()
	image, err = b.withinTime(ctx, shared, build)
	return image, err
}

// withinTime builds for as long as a build may take.
func (b *builds) withinTime(ctx context.Context, shared *sharedBuild, build buildFunc) (runtime.Image, error) {
	ctx, stop := limited(ctx, b.opts.Timeout, errBuildTime)
	defer stop()
	image, err := build(ctx, func(event runtime.BuildEvent) { b.tell(shared, event) })
	if err != nil && errors.Is(context.Cause(ctx), errBuildTime) {
		return image, fault.Wrap(fault.BuildTimeout, err, "the build was stopped after %v, its time limit",
			b.opts.Timeout).
			WithHint("make its steps shorter, or build the image before (`aod build`); the setting `build_timeout` " +
				"of the server says how long a build may take")
	}
	return image, err
}

// await waits for the turn of a build.
func (b *builds) await(ctx context.Context) error {
	ctx, stop := limited(ctx, b.opts.Wait, errBuildTurn)
	defer stop()
	err := acquire(ctx, b.turns)
	if errors.Is(err, errBuildTurn) {
		return fault.New(fault.Busy, "the build waited for more than %v for its turn", b.opts.Wait).
			WithHint("try again later; the settings `builds` and `queue_wait` say how many images are built at once " +
				"and how long others wait")
	}
	return err
}

// limited is a context with a timeout, or without if that is zero.
func limited(ctx context.Context, timeout time.Duration, cause error) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, cause)
}

// leave ends the wait of one. The last one to leave a build that goes on ends it, and who asks
// for its image now begins another. The build goes on when a call had less time than it takes:
// else no such call would ever find its image.
func (b *builds) leave(ctx context.Context, shared *sharedBuild, me *follower) {
	close(me.gone)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(shared.followers, me)
	if cause := context.Cause(ctx); errors.Is(cause, run.ErrDeadline) || errors.Is(cause, run.ErrCallerEnded) {
		return
	}
	if len(shared.followers) == 0 {
		b.end(shared)
	}
}

// end is called with the lock held.
func (b *builds) end(shared *sharedBuild) {
	shared.cancel(errNobodyWaits)
	b.forget(shared)
}

// close ends all builds, and returns when they have ended.
func (b *builds) close() {
	b.mu.Lock()
	for _, shared := range b.going {
		b.end(shared)
	}
	b.mu.Unlock()
	b.tasks.Wait()
}

// forget is called with the lock held.
func (b *builds) forget(shared *sharedBuild) {
	if b.going[shared.ref] == shared {
		delete(b.going, shared.ref)
	}
}

// tell passes an event on to all who wait.
func (b *builds) tell(shared *sharedBuild, event runtime.BuildEvent) {
	b.mu.Lock()
	followers := slices.Collect(maps.Keys(shared.followers))
	b.mu.Unlock()
	for _, each := range followers {
		select { // it waits for one who is slow
		case each.events <- event:
		case <-each.gone:
		}
	}
}

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
