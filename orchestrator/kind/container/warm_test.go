package container

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// warmHarness has one unit, and so many runs of others.
type warmHarness struct {
	unit   *unit.Unit
	others *atomic.Int32
}

func (w warmHarness) Units(context.Context) []*unit.Unit               { return []*unit.Unit{w.unit} }
func (w warmHarness) Unit(context.Context, string) (*unit.Unit, error) { return w.unit, nil }
func (w warmHarness) Busy() (int, map[string]int)                      { return int(w.others.Load()), nil }
func (w warmHarness) Room() int64                                      { return math.MaxInt64 }

// shelf is a bench with one sandbox that waits, and no other that comes.
type shelf struct {
	*harness
	waits *pool.Sandbox
	ended <-chan struct{} // closed when nothing of it runs any more
	empty func()          // ends the pool

	others atomic.Int32 // other runs, which have slots
}

// newShelf has a sandbox of "worker" wait, with its program loaded or not.
func newShelf(t *testing.T, program enginetest.Program, loaded bool, agent string) *shelf {
	t.Helper()
	s := &shelf{harness: newBench(t, map[string]string{"agent.yaml": worker["agent.yaml"] + "warm: 1\n" + agent})}
	s.unit.Version, s.opts.Pool.Size = "1", 4
	s.over = &lossy{Fake: s.engine}
	first := make(chan struct{})
	s.ended = first
	ends := sync.OnceFunc(func() { close(first) })
	s.engine.Program = func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		defer ends()
		return enginetest.WithInit(program)(ctx, spec, stdout, stderr)
	}
	s.restart()
	if loaded {
		s.kind.pool.Learn(s.unit, pool.Observation{Asked: true})
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	filled := s.kind
	go func() {
		defer close(over)
		filled.Warm(ctx, warmHarness{s.unit, &s.others})
	}()
	s.empty = func() {
		cancel()
		<-over
	}
	t.Cleanup(s.empty)
	testkit.Eventually(t, "a sandbox waits", func() bool { return len(filled.pool.Waiting()) == 1 })
	filled.pool.Pause("worker", time.Now().Add(time.Hour))
	s.waits = filled.pool.Waiting()[0]
	if s.waits.Loaded != loaded {
		t.Fatalf("its program is loaded: %v", s.waits.Loaded)
	}
	return s
}

// dies kills the waiting sandbox as somebody outside does, and returns when that is known.
func (s *shelf) dies() {
	must(s.engine.Kill(context.Background(), s.waits.Runtime.ID()))
	<-s.ended
	testkit.Eventually(s.t, "its end is known", func() bool { return !s.waits.Runtime.Running() && !s.waits.API.Live() })
}

// letsGo does what the end of a process does with the sandbox.
func (s *shelf) letsGo() {
	s.waits.Stop()
	<-s.waits.Served
	s.waits.Runtime.Release()
}

// gone fails the test if anything is left of the waiting sandbox.
func (s *shelf) gone() {
	s.t.Helper()
	if _, there := s.engine.Spec(s.waits.Runtime.ID()); there {
		s.t.Error("its container is left")
	}
	if left := below(s.t, s.kind.machine.poolDir()); left != "" {
		s.t.Errorf("its directory is left: %s", left)
	}
}

// sums is a program that gives back its input's number.
func sums(_ context.Context, spec runtime.ContainerSpec, stdout, _ io.Writer) int {
	raw, err := os.ReadFile(filepath.Join(mounted(spec, "/io"), "input.json"))
	if err != nil {
		return 99
	}
	fmt.Fprintln(stdout, "ran")
	put(mounted(spec, "/io"), "output.json", string(raw))
	return 0
}

func way(x *execution) string {
	var states []string
	for _, tr := range x.run.Record.Transitions {
		states = append(states, string(tr.State))
	}
	return strings.Join(states, " ")
}

// succeeds makes the one attempt of a run that gets its own input back.
func (s *shelf) succeeds(x *execution) {
	s.t.Helper()
	got, err := x.Attempt(s.t.Context())
	if err != nil || got.Outcome != api.Success || string(got.Output) != string(x.run.Input.Payload.JSON()) {
		s.t.Fatalf("%+v %+v, %v", got, got.Failure, err)
	}
}

// The ways of runs that got a sandbox of their own in the end.
const (
	cameOut     = "idle starting failed starting running"
	cameOutLate = "idle starting running failed starting running" // its death was seen only then
	neverBegan  = "idle starting running failed starting running"
	begunAgain  = "idle starting " + "starting running"
)

func TestTheEndOfAContainerWaitsForOtherRuns(t *testing.T) {
	t.Parallel()
	s := newShelf(t, sums, false, "")
	x := s.executionOf("r1", `{"n":7}`)
	s.succeeds(x)
	s.others.Store(1)
	began := time.Now()
	s.ends(x)
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("its container ended beside the other run, after %s", took)
	}
	s.gone()
}

func TestARunGetsTheSandboxThatWaits(t *testing.T) {
	t.Parallel()
	s := newShelf(t, sums, false, "")
	x := s.executionOf("r1", `{"n":7}`)
	put(x.run.AttemptDir(), "of/a/dead/process", "")
	s.succeeds(x)
	c := x.run.Record.Container
	if c.ID != s.waits.Runtime.ID() || x.attempt.origin != warm || strings.Count(s.calls(), "Create") != 1 || x.run.Record.Image.ID == "" || x.run.Record.Timings.Create != 0 {
		t.Errorf("container %+v of %s: %s", c, s.waits.Runtime.ID(), s.calls())
	}
	if x.run.Record.StartedAt.Before(s.waits.Since) || way(x) != "idle starting running" {
		t.Errorf("its time began before it: %s", way(x))
	}
	if !s.kind.pool.Has(s.waits.ID) {
		t.Error("a sweep would take it for a stray")
	}
	s.ends(x)
	s.gone()
	if s.kind.pool.Has(s.waits.ID) {
		t.Error("the pool still knows it")
	}
}

func TestAnotherVersionGetsASandboxOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newShelf(t, sums, false, "")
	newer := *s.unit
	newer.Version = "2"
	s.unit = &newer
	x := s.executionOf("r1", `{"n":7}`)
	s.succeeds(x)
	if x.attempt.origin != fresh || len(s.kind.pool.Waiting()) != 1 {
		t.Error("it got the sandbox of an older version")
	}
	x.Settle(t.Context())
	if err := x.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}
