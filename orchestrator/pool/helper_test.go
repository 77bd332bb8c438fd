package pool

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

const owner = "me"

var image = runtime.Image{ID: "sha256:debian", Tags: []string{"debian"}, Cmd: []string{"sleep"}, OS: "linux", Arch: "amd64"}

// yard is a pool with its source and its world, over a fake engine.
type yard struct {
	t      *testing.T
	pool   *Pool
	engine *enginetest.Fake
	dir    string // of the sandboxes
	init   string // the file of the init
	end    func() // ends Run, and returns when it has

	mu      sync.Mutex
	units   map[string]*unit.Unit
	wants   map[string]int   // by unit
	broken  map[string]error // by the engine's method
	fails   error            // of the source
	asked   []bool           // whether what was to be started was to be loaded
	running int              // what the world says of the others
	waiting map[string]int
	looked  int // at all units
}

// newYard fills a pool of units that want so many sandboxes.
func newYard(t *testing.T, wants map[string]int, opts Options) *yard {
	t.Helper()
	y := &yard{t: t, dir: t.TempDir(), init: filepath.Join(t.TempDir(), "init"), units: map[string]*unit.Unit{}, wants: wants, broken: map[string]error{}}
	for _, name := range []string{"worker", "asker"} {
		y.units[name] = &unit.Unit{Name: name, Version: "1"}
	}
	if err := os.WriteFile(y.init, []byte("init"), 0o755); err != nil {
		t.Fatal(err)
	}
	y.engine = enginetest.NewFake(enginetest.WithInit(func(ctx context.Context, _ runtime.ContainerSpec, _, _ io.Writer) int {
		<-ctx.Done()
		return 137
	}))
	y.engine.AddImage(image)
	y.engine.Hook = func(_ context.Context, method string) error {
		y.mu.Lock()
		defer y.mu.Unlock()
		return y.broken[method]
	}
	y.pool = New(y, opts, slog.New(slog.DiscardHandler))
	y.run()
	return y
}

// run fills the pool until the test's end, or y.end.
func (y *yard) run() {
	ctx, cancel := context.WithCancel(y.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		y.pool.Run(ctx, y)
	}()
	y.end = sync.OnceFunc(func() { cancel(); <-done })
	y.t.Cleanup(y.end)
	y.within("the units were looked at", func() bool {
		y.mu.Lock()
		defer y.mu.Unlock()
		return y.looked > 0
	})
}

// within polls until something is so.
func (y *yard) within(what string, is func() bool) {
	y.t.Helper()
	if !testkit.Within(testkit.Patience, is) {
		y.t.Fatalf("it didn't come to that: %s: %+v", what, y.pool.Stats())
	}
}

func (y *yard) breaks(method string, err error) { y.set(func() { y.broken[method] = err }) }

func (y *yard) set(change func()) {
	y.mu.Lock()
	defer y.mu.Unlock()
	change()
}

// survey has the pool ask what the units want, and act upon it.
func (y *yard) survey() {
	y.pool.survey(y.t.Context())
	y.pool.nudge()
}

func (y *yard) shelf(unit string) api.PoolUnit {
	for _, shelf := range y.pool.Stats().Units {
		if shelf.Unit == unit {
			return shelf
		}
	}
	return api.PoolUnit{Unit: unit}
}

// stocked returns when so many sandboxes of a unit wait, and no more are to come.
func (y *yard) stocked(unit string, n int) (shelf api.PoolUnit) {
	y.t.Helper()
	y.within("sandboxes wait", func() bool {
		shelf = y.shelf(unit)
		return len(shelf.Waiting) == n && shelf.Starting == 0
	})
	return shelf
}

// acquire gives a sandbox to a run, which ends at once.
func (y *yard) acquire(unit string) *Sandbox {
	y.t.Helper()
	got := y.pool.Acquire(y.unit(unit))
	if got != nil {
		y.t.Cleanup(func() { _ = got.Discard(context.WithoutCancel(y.t.Context())) }) // what a test has removed already
	}
	return got
}

// calm lets all calls be long ago: then nothing but what a test does holds the filling up.
func (y *yard) calm() {
	y.pool.mu.Lock()
	defer y.pool.mu.Unlock()
	for _, units := range y.pool.units {
		for i := range units.calls {
			units.calls[i] = units.calls[i].Add(-time.Minute)
		}
	}
}

func (y *yard) unit(name string) *unit.Unit {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.units[name]
}

// containers returns what the engine has of a sandbox; "" is of all.
func (y *yard) containers(id string) []runtime.ContainerRef {
	y.t.Helper()
	refs, err := y.engine.ContainersByLabel(context.WithoutCancel(y.t.Context()), map[string]string{runtime.LabelRun: id})
	if err != nil {
		y.t.Fatal(err)
	}
	return refs
}

// dirs returns the directories of sandboxes.
func (y *yard) dirs() []string {
	found, _ := filepath.Glob(filepath.Join(y.dir, "*"))
	return found
}

// Wants implements Source.
func (y *yard) Wants(u *unit.Unit) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.wants[u.Name]
}

// Start implements Source.
func (y *yard) Start(ctx context.Context, u *unit.Unit, id string, loaded bool) (*Sandbox, error) {
	y.mu.Lock()
	y.asked = append(y.asked, loaded)
	fails := y.fails
	y.mu.Unlock()
	if loaded {
		return nil, ErrNotReady // its program asks for nothing
	}
	if fails != nil {
		return nil, fails
	}
	dir := filepath.Join(y.dir, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	layout, err := runtime.NewLayout(dir, y.init)
	if err != nil {
		return nil, err
	}
	s := NewSandbox(id, Key(u), loaded)
	s.Layout, s.Spec = layout, runtime.Spec{Run: id, Root: id, Unit: u.Name, Owner: owner, Mode: runtime.ModeParked, Durable: true, Image: image, Network: "none", ReadOnly: true, Limits: runtime.DefaultLimits()}
	return s, s.Start(ctx, context.WithoutCancel(ctx), y.startSandbox, slog.New(slog.DiscardHandler))
}

func (y *yard) startSandbox(ctx context.Context, spec runtime.Spec, layout runtime.Layout, log *runtime.Log) (*runtime.Sandbox, error) {
	return runtime.Start(ctx, y.engine, spec, layout, log)
}

// Remove implements Source.
func (y *yard) Remove(ctx context.Context, id string) error {
	return runtime.RemoveAll(ctx, y.engine, id, owner)
}

// Units implements run.World.
func (y *yard) Units(context.Context) (all []*unit.Unit) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.looked++
	for _, u := range y.units {
		all = append(all, u)
	}
	return all
}

// Unit implements run.World.
func (y *yard) Unit(_ context.Context, name string) (*unit.Unit, error) {
	if u := y.unit(name); u != nil {
		return u, nil
	}
	return nil, fault.New(fault.NotFound, "there is no unit %q", name)
}

// Busy implements run.World.
func (y *yard) Busy() (running int, waiting map[string]int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.running, y.waiting
}

// Room implements run.World.
func (y *yard) Room() int64 { return math.MaxInt64 }

var errNo = errors.New("no")
