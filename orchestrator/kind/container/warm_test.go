package container

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/unit"
)

// world has one unit and nothing else to do.
type world struct{ unit *unit.Unit }

func (w world) Units(context.Context) []*unit.Unit               { return []*unit.Unit{w.unit} }
func (w world) Unit(context.Context, string) (*unit.Unit, error) { return w.unit, nil }
func (w world) Busy() (int, map[string]int)                      { return 0, nil }

// shelf is a bench with one sandbox that waits, and no other that comes.
type shelf struct {
	*bench
	waits *pool.Sandbox
	ended <-chan struct{} // closed when nothing of it runs any more
	empty func()          // ends the pool
}

// newShelf has a sandbox of "worker" wait, with its program loaded or not.
func newShelf(t *testing.T, program enginetest.Program, loaded bool, agent string) *shelf {
	t.Helper()
	s := &shelf{bench: newBench(t, map[string]string{"agent.yaml": worker["agent.yaml"] + "warm: 1\n" + agent})}
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
		filled.Warm(ctx, world{s.unit})
	}()
	s.empty = func() {
		cancel()
		<-over
	}
	t.Cleanup(s.empty)
	within(t, "a sandbox waits", func() bool { return len(filled.pool.Waiting()) == 1 })
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
	within(s.t, "its end is known", func() bool { return !s.waits.Runtime.Running() })
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
	if left := below(s.t, s.kind.poolDir()); left != "" {
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
	for _, tr := range x.Record.Transitions {
		states = append(states, string(tr.State))
	}
	return strings.Join(states, " ")
}

// succeeds makes the one attempt of a run that gets its own input back.
func (s *shelf) succeeds(x *execution) {
	s.t.Helper()
	got, err := x.Attempt(s.t.Context())
	if err != nil || got.Outcome != api.Success || string(got.Output) != string(x.Input.Payload.JSON()) {
		s.t.Fatalf("%+v %+v, %v", got, got.Failure, err)
	}
}

// The ways of runs that got a sandbox of their own in the end.
const (
	cameOut    = "idle starting failed starting running"
	neverBegan = "idle starting running failed starting running"
)

func TestARunGetsTheSandboxThatWaits(t *testing.T) {
	s := newShelf(t, sums, false, "")
	x := s.executionOf("r1", `{"n":7}`)
	put(x.AttemptDir(), "of/a/dead/process", "")
	s.succeeds(x)
	c := x.Record.Container
	if c.ID != s.waits.Runtime.ID() || x.attempt.origin != warm || strings.Count(s.calls(), "Create") != 1 || x.Record.Image.ID == "" || x.Record.Timings.Create != 0 {
		t.Errorf("container %+v of %s: %s", c, s.waits.Runtime.ID(), s.calls())
	}
	if x.Record.StartedAt.Before(s.waits.Since) || way(x) != "idle starting running" {
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

// What happens to a sandbox between its choice and its first step must not happen to its run.
func TestAWaitingSandboxThatFailsItsRun(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*shelf)
	}{
		{"it is dead", (*shelf).dies},
		{"its directory is gone", func(s *shelf) { must(os.RemoveAll(s.waits.Layout.Dir)) }},
		{"its input directory is gone", func(s *shelf) { must(os.RemoveAll(filepath.Join(s.waits.Layout.Dir, "io"))) }},
		{"its line is cut", func(s *shelf) { s.waits.Runtime.Release() }},
	} {
		for _, stubborn := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, can't be removed: %v", c.name, stubborn), func(t *testing.T) {
				s := newShelf(t, sums, false, "")
				if stubborn {
					s.over.(*lossy).failsAt(failure{"Remove", 1, false})
				} else {
					s.over.(*lossy).failsAt()
				}
				x := s.executionOf("r1", `{"n":7}`)
				var once bool
				x.LedBy(entering{at: api.Starting, do: func() {
					if !once {
						once = true
						c.spoil(s)
					}
				}}, nil)
				s.succeeds(x)
				if way(x) != cameOut || x.attempt.origin != fresh || x.Record.Container.ID == s.waits.Runtime.ID() {
					t.Errorf("its way: %s", way(x))
				}
				if id, left := x.saved.Sandboxes[-1]; left != stubborn || left && id != s.waits.ID || x.saved.Sandboxes[1] != "" {
					t.Errorf("it remembers %v", x.saved.Sandboxes)
				}
				s.ends(x)
				if s.kind.pool.Has(s.waits.ID) {
					t.Error("the pool still knows it")
				}
			})
		}
	}
}

// A program that waits for its run may die before it gets it. Nobody knows that before it has
// been asked to run.
func TestALoadedProgramThatNeverAskedFailsNoRun(t *testing.T) {
	s := newShelf(t, serves, true, "")
	x := s.executionOf("r1", `{"n":7}`)
	var once sync.Once
	x.LedBy(entering{at: api.Starting, do: func() { once.Do(s.dies) }}, nil)
	s.succeeds(x)
	if way(x) != neverBegan || x.attempt.origin != fresh {
		t.Errorf("its way: %s", way(x))
	}
	s.ends(x)
	s.gone()
}

func TestASandboxWhoseRunCantBeStoredIsDiscarded(t *testing.T) {
	s := newShelf(t, sums, false, "")
	x := s.executionOf("r1", `{"n":7}`)
	x.LedBy(entering{at: api.Starting, err: runtime.ErrDetach}, nil)
	if _, err := x.Attempt(t.Context()); err == nil {
		t.Fatal("it goes on")
	}
	s.gone()
}

// A process may die at any step of a claim. What it had stored is that the run has the sandbox.
func TestAClaimThatADeadProcessBegan(t *testing.T) {
	for _, c := range []struct {
		name string
		dies func(*shelf, *execution) // how far the process came
		came string
	}{
		{"before anything was moved", func(*shelf, *execution) {}, "idle starting starting running"},
		{"when the directory was moved", func(s *shelf, x *execution) { must(os.Rename(s.waits.Layout.Dir, x.AttemptDir())) }, neverBegan},
		{"when the input was there", func(s *shelf, x *execution) { must(x.moveIn(s.waits)) }, neverBegan},
		{"when the container was gone as well", func(s *shelf, _ *execution) {
			must(runtime.RemoveAll(context.Background(), s.engine, s.waits.ID, "me"))
		}, "idle starting starting running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t, sums, false, "")
			x := s.executionOf("r1", `{"n":7}`)
			x.Durable = true
			if got := s.kind.pool.Acquire(s.unit); got != s.waits {
				t.Fatalf("it acquires %v", got)
			}
			x.acquire(s.waits)
			must(x.Enter(api.Starting, ""))
			c.dies(s, x)
			s.letsGo()
			s.empty()
			next := s.resumed(x)
			got, err := next.Resume(t.Context())
			if err != nil || got.Outcome != api.Success || string(got.Output) != `{"n":7}` {
				t.Fatalf("%+v %+v, %v", got, got.Failure, err)
			}
			if way(next) != c.came || next.Record.Container.ID == s.waits.Runtime.ID() {
				t.Errorf("its way: %s", way(next))
			}
			s.ends(next)
			s.gone()
		})
	}
}

// waitsUntil is a program that has the same end as another, later.
func waitsUntil(gate <-chan struct{}, program enginetest.Program) enginetest.Program {
	return func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		select {
		case <-gate:
			return program(ctx, spec, stdout, stderr)
		case <-ctx.Done():
			return 137
		}
	}
}

func TestARunInAClaimedSandboxIsResumed(t *testing.T) {
	for name, vanishes := range map[string]bool{"with its container": false, "without it": true} {
		t.Run(name, func(t *testing.T) {
			gate := make(chan struct{})
			s := newShelf(t, waitsUntil(gate, sums), false, "")
			x := s.executionOf("r1", `{"n":7}`)
			x.Durable = true
			ctx, detach := context.WithCancelCause(t.Context())
			x.LedBy(leaving{detach: detach}, nil)
			if _, err := x.Attempt(ctx); err == nil || x.attempt.origin != warm {
				t.Fatalf("error %v", err)
			}
			x.Release()
			s.empty()
			next := s.resumed(x)
			if !s.kind.pool.Has(s.waits.ID) {
				t.Error("a sweep would take it for a stray")
			}
			if vanishes {
				must(s.engine.Remove(t.Context(), s.waits.Runtime.ID()))
			}
			close(gate)
			got, err := next.Resume(t.Context())
			switch {
			case vanishes && (err == nil || !strings.Contains(err.Error(), "vanished")):
				t.Errorf("%+v, %v", got, err)
			case !vanishes && (err != nil || string(got.Output) != `{"n":7}` || next.attempt.origin != warm):
				t.Errorf("%+v %+v, %v", got, got.Failure, err)
			}
			s.ends(next)
			s.gone()
		})
	}
}

// serves is a program that serves one run after the other, as the library does. Each leaves
// something, and finds what others left.
func serves(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	dir, inside := mounted(spec, "/io"), http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(mounted(spec, "/run/aod"), "aod.sock"))
		},
	}}
	var kept *os.File
	defer func() { _ = kept.Close() }()
	for {
		id, more := "", -1 // the last run is told neither
		for more < 0 {
			if ctx.Err() != nil {
				return 137
			}
			if answer := do(ctx, &inside, http.MethodGet, "/invocation", ""); answer != nil && answer.StatusCode == http.StatusOK {
				id = answer.Header.Get("AOD-Run")
				more, _ = strconv.Atoi(answer.Header.Get("AOD-Remaining"))
			} else {
				time.Sleep(time.Millisecond) // as the library does
			}
		}
		raw, err := os.ReadFile(filepath.Join(dir, "input.json"))
		if err != nil {
			return 99
		}
		if _, err := os.Stat(filepath.Join(dir, "output", "left")); err == nil {
			return 98
		}
		put(dir, "output/left", string(raw))
		if kept != nil { // of the run before
			_, _ = kept.WriteString("too late")
			_ = kept.Close()
		}
		kept, _ = os.OpenFile(filepath.Join(dir, "output", "left"), os.O_WRONLY|os.O_TRUNC, 0o600)
		_, _ = kept.Write(raw)
		fmt.Fprintf(stdout, "ran %s\n", raw)
		if more == 0 {
			put(dir, "output.json", string(raw))
			return 0
		}
		fmt.Fprintln(stdout, handoff.EndLine(id))
		fmt.Fprintln(stderr, handoff.EndLine(id))
		if answer := do(ctx, &inside, http.MethodPost, "/invocation/result", string(raw)); answer == nil || answer.StatusCode != http.StatusNoContent {
			return 97
		}
	}
}

func do(ctx context.Context, inside *http.Client, method, path, body string) *http.Response {
	req, err := http.NewRequestWithContext(ctx, method, "http://aod"+path, strings.NewReader(body))
	must(err)
	req.Header.Set("Content-Type", "application/json")
	answer, err := inside.Do(req)
	if err != nil {
		return nil
	}
	_ = answer.Body.Close()
	return answer
}

func TestASandboxServesOneRunAfterTheOther(t *testing.T) {
	s := newShelf(t, serves, true, "reuse: 3\n")
	for n := 1; n <= 3; n++ {
		id := fmt.Sprintf("r%d", n)
		input := fmt.Sprintf(`{"n":%d}`, n)
		x := s.executionOf(id, input)
		var log lines
		x.LedBy(alone{}, log.observe)
		s.succeeds(x)
		if x.Record.Container.ID != s.waits.Runtime.ID() || x.Record.Container.Served != n || x.attempt.origin != loaded {
			t.Fatalf("run %d: container %+v", n, x.Record.Container)
		}
		x.Record.Outcome = api.Success // as the loop does
		if last := n == 3; (x.attempt.ending == posted) == last {
			t.Errorf("run %d: it ended as %v", n, x.attempt.ending)
		}
		x.Settle(t.Context())
		if got := strings.Join(log.all(), "\n"); got != "ran "+input {
			t.Errorf("run %d: its log is %q", n, got)
		}
		if raw, err := os.ReadFile(filepath.Join(x.OutputDir(), "left")); string(raw) != input {
			t.Errorf("run %d: its file is %q, %v", n, raw, err)
		}
		if _, has := x.saved.Sandboxes[1]; has && n < 3 {
			t.Errorf("run %d: what is stored says that it has the sandbox", n)
		}
		if err := x.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		if back := len(s.kind.pool.Waiting()); (back == 1) != (n < 3) {
			t.Errorf("after run %d wait %d", n, back)
		}
	}
	for n := 1; n <= 3; n++ { // the program had it open for longer than its run
		raw, err := os.ReadFile(filepath.Join(s.home.Runs, fmt.Sprintf("r%d/output/left", n)))
		if want := fmt.Sprintf(`{"n":%d}`, n); string(raw) != want {
			t.Errorf("the file of run %d is %q, %v", n, raw, err)
		}
	}
	s.nothingLeft()
	s.gone()
}

// Any doubt discards a sandbox, rather than give it to another run.
func TestASandboxThatServesNoOther(t *testing.T) {
	for _, c := range []struct {
		name    string
		input   string
		outcome api.Outcome
		before  func(*shelf, *execution) // it is given back
	}{
		{"its run's result breaks the contract", `{"n":"x"}`, api.ContractViolation, func(*shelf, *execution) {}},
		{"it ends", `{"n":7}`, api.Success, func(s *shelf, _ *execution) { s.dies() }},
		{"its directory can't be emptied", `{"n":7}`, api.Success, func(_ *shelf, x *execution) { must(os.RemoveAll(filepath.Join(x.AttemptDir(), "io"))) }},
		{"its place is taken", `{"n":7}`, api.Success, func(s *shelf, _ *execution) { put(s.kind.poolDir(), s.waits.ID+"/x", "") }},
		{"the server ends", `{"n":7}`, api.Success, func(s *shelf, _ *execution) { s.empty() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t, serves, true, "reuse: 3\n")
			x := s.executionOf("r1", c.input)
			got, err := x.Attempt(t.Context())
			if err != nil || got.Outcome != c.outcome || x.attempt.ending != posted {
				t.Fatalf("%+v %+v, %v", got, got.Failure, err)
			}
			x.Record.Outcome = got.Outcome // as the loop does
			c.before(s, x)
			s.ends(x)
			if n := len(s.kind.pool.Waiting()); n != 0 {
				t.Errorf("%d wait for other runs", n)
			}
			if s.kind.pool.Has(s.waits.ID) {
				t.Error("the pool still knows it")
			}
		})
	}
}

func TestHowManySandboxesAUnitWants(t *testing.T) {
	three := 3
	for _, c := range []struct {
		name, agent string
		own         *int
		want        int
	}{
		{"it says nothing", "", nil, 0},
		{"it says so", "warm: 2\n", nil, 2},
		{"the operator says otherwise", "warm: 2\n", &three, 3},
		{"under an isolation runtime none can wait", "warm: 2\nruntime: runsc\n", &three, 0},
	} {
		u := load(t, map[string]string{
			"Dockerfile": worker["Dockerfile"], "tools.yaml": worker["tools.yaml"], "schema.json": worker["schema.json"],
			"agent.yaml": worker["agent.yaml"] + c.agent,
		})
		kind := New(enginetest.NewFake(nil), Options{Units: map[string]UnitOptions{"worker": {Warm: c.own}}})
		if got := (source{kind}).Wants(u); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestHowManyRunsASandboxMayServe(t *testing.T) {
	u := newBench(t, map[string]string{"agent.yaml": worker["agent.yaml"] + "reuse: 5\n"}).unit
	for _, c := range []struct {
		name   string
		image  runtime.Image
		loaded bool
		want   int
	}{
		{"as many as it says", runtime.Image{}, true, 5},
		{"one, if its program isn't loaded", runtime.Image{}, false, 1},
		{"one, if something of it isn't emptied", runtime.Image{Volumes: []string{"/var/spool"}}, true, 1},
	} {
		if got := runsOf(u, c.image, c.loaded); got != c.want {
			t.Errorf("%s: %d", c.name, got)
		}
	}
	if got := runsOf(newBench(t).unit, runtime.Image{}, true); got != 1 {
		t.Errorf("a unit that says nothing: %d", got)
	}
}

func TestASandboxThatComesToNothingLeavesNothing(t *testing.T) {
	for name, spoil := range map[string]func(*bench){
		"its image can't be built": func(b *bench) { b.breaks("Build", fault.New(fault.Build, "no")) },
		"it can't be created":      func(b *bench) { b.breaks("Create", errAway) },
		"it can't be started":      func(b *bench) { b.breaks("Start", errAway) },
		"it ends before it waits": func(b *bench) {
			b.engine.Program = func(context.Context, runtime.ContainerSpec, io.Writer, io.Writer) int { return 1 }
		},
		"its init can't be had":  func(b *bench) { must(os.RemoveAll(b.home.Bin)); must(os.WriteFile(b.home.Bin, nil, 0o600)) },
		"its directory can't be": func(b *bench) { must(os.RemoveAll(b.kind.poolDir())); must(os.WriteFile(b.kind.poolDir(), nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			spoil(b)
			if s, err := (source{b.kind}).Start(t.Context(), b.unit, "s1", false); err == nil {
				t.Errorf("it waits: %v", s)
			}
			b.nothingLeft()
			if entries, _ := os.ReadDir(b.kind.poolDir()); len(entries) > 0 {
				t.Errorf("left are %v", entries)
			}
		})
	}
}
