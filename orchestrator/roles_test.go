package orchestrator

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/readiness"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// able is a stage with every role that a kind may have.
type able struct {
	stage
	opened, closed, warm, strays atomic.Int32
	refuses, unready, unopened   error
	home                         run.Home
	world                        atomic.Value // run.World
	live                         atomic.Value // func(string) bool
	sweeps                       func(id string) error
}

func (a *able) Open(home run.Home) error {
	a.opened.Add(1)
	a.home = home
	return a.unopened
}

func (a *able) Close() error { a.closed.Add(1); return nil }

func (a *able) Warm(ctx context.Context, world run.World) {
	a.warm.Add(1)
	a.world.Store(world)
	<-ctx.Done()
	a.warm.Add(-1)
}

func (a *able) Warmed() api.PoolStats { return api.PoolStats{Size: 42} }

func (a *able) Ready(context.Context) error { return a.unready }

func (a *able) SweepRun(_ context.Context, id string) error {
	a.note(id, "sweep")
	if a.sweeps != nil {
		return a.sweeps(id)
	}
	return nil
}

func (a *able) SweepStrays(_ context.Context, live func(string) bool) error {
	a.live.Store(live)
	a.strays.Add(1)
	return nil
}

func (a *able) Accept(_ context.Context, u *unit.Unit) error {
	a.note(u.Name, "accept")
	return a.refuses
}

func (a *able) Image(u *unit.Unit) string            { return "image-of-" + u.Name }
func (a *able) StdinBytes(*unit.Unit) (int64, error) { return 99, nil }
func (a *able) Program(u *unit.Unit) *api.AgentProgram {
	return &api.AgentProgram{Problem: u.Name + " has none", Hint: "install it"}
}

func (a *able) Card(context.Context, *unit.Unit) (json.RawMessage, error) {
	return json.RawMessage(`{"card":1}`), nil
}

func TestEachRoleOfAKindIsPlayed(t *testing.T) {
	t.Parallel()
	a := &able{}
	gate := make(chan struct{})
	a.attempt = func(ctx context.Context, x *actor) (run.Result, error) { return x.waits(ctx, gate) }
	p := newPlays(t, a, func(o *Options) { o.Kinds["another"], o.Kinds["agent"], o.Kinds["plain"] = a, a, &stage{} })
	if a.opened.Load() != 1 || a.home.Dir != p.opts.Home || a.home.Runs != p.service.path("runs") || a.home.Owner == "" || a.home.Bin == "" {
		t.Errorf("opened %d times, home %+v", a.opened.Load(), a.home)
	}
	within(t, func() bool { return a.warm.Load() == 1 && a.strays.Load() == 1 }, func() string { return "it isn't warmed or swept" })
	if size := p.service.Figures.Pool().Size; size != 42 {
		t.Errorf("pool of %d", size)
	}
	id := p.submit()
	p.until(id, running)
	world := a.world.Load().(run.World)
	if all := world.Units(trusted.Context(t)); len(all) != 1 || all[0].Name != "worker" {
		t.Errorf("units %v", all)
	}
	if u, err := world.Unit(trusted.Context(t), "worker"); err != nil || u.Version == "" {
		t.Errorf("unit %v, %v", u, err)
	}
	if _, err := world.Unit(trusted.Context(t), "nobody"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a unit that isn't there: %v", err)
	}
	if n, waiting := world.Busy(); n != 1 || len(waiting) != 0 {
		t.Errorf("busy %d, %v", n, waiting)
	}
	if live := a.live.Load().(func(string) bool); !live(id) || live("another") {
		t.Error("what is live is not known to who sweeps")
	}
	if info, err := p.service.Units.Show(trusted.Context(t), "worker"); err != nil || info.Image != "image-of-worker" {
		t.Errorf("%+v, %v", info, err)
	}
	if n, err := p.service.Units.StdinLimit(trusted.Context(t), "worker"); err != nil || n != 99 {
		t.Errorf("stdin %d, %v", n, err)
	}
	if card, err := p.service.Units.Card(trusted.Context(t), "worker"); err != nil || string(card) != `{"card":1}` {
		t.Errorf("card %s, %v", card, err)
	}
	write(t, filepath.Join(p.opts.Sources[0], "reviewer", "agent.yaml"), "name: reviewer\nkind: agent\nimage: debian\nagent: {command: [cli]}\n")
	if info, err := p.service.Units.Show(trusted.Context(t), "reviewer"); err != nil || info.Agent == nil || info.Agent.Program == nil || info.Agent.Program.Problem != "reviewer has none" {
		t.Errorf("%+v, %v", info.Agent, err)
	}
	if err := p.service.Ready(trusted.Context(t)); err != nil {
		t.Error(err)
	}
	p.service.readiness = readiness.Readiness{} // its answer would count for a second
	if a.unready = errAway; !errors.Is(p.service.Ready(trusted.Context(t)), errAway) {
		t.Error("it says that it is ready")
	}
	close(gate)
	p.await(id)
	p.stop()
	if a.closed.Load() != 1 || a.warm.Load() != 0 {
		t.Errorf("closed %d times, warmed still %d", a.closed.Load(), a.warm.Load())
	}
}

func TestNoRoleOfAKindIsMissed(t *testing.T) {
	t.Parallel()
	p := newPlays(t, &stage{})
	if pool := p.service.Figures.Pool(); pool.Size != 0 || pool.Units == nil {
		t.Errorf("pool %+v", pool)
	}
	if err := p.service.Ready(trusted.Context(t)); err != nil {
		t.Error(err)
	}
	if info, err := p.service.Units.Show(trusted.Context(t), "worker"); err != nil || info.Image != "" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := p.service.Units.StdinLimit(trusted.Context(t), "worker"); !fault.Is(err, fault.Input) || !strings.Contains(err.Error(), "doesn't read stdin") {
		t.Errorf("stdin: %v", err)
	}
	if _, err := p.service.Units.Card(trusted.Context(t), "worker"); !fault.Is(err, fault.Input) || !strings.Contains(err.Error(), "has no model card") {
		t.Errorf("card: %v", err)
	}
	if _, _, err := p.service.Units.Put(trusted.Context(t), "uploaded", uploaded(t, "uploaded")); err != nil {
		t.Errorf("upload: %v", err)
	}
	if record := p.await(p.submit()); record.Outcome != api.Success {
		t.Errorf("record %s", show(record))
	}
}

func TestAKindHasAWordOnUploads(t *testing.T) {
	t.Parallel()
	a := &able{}
	p := newPlays(t, a)
	a.refuses = fault.New(fault.Build, "its image can't be built")
	if _, _, err := p.service.Units.Put(trusted.Context(t), "uploaded", uploaded(t, "uploaded")); !fault.Is(err, fault.Build) {
		t.Errorf("error %v", err)
	}
	if _, err := p.service.Units.Show(trusted.Context(t), "uploaded"); !fault.Is(err, fault.NotFound) {
		t.Errorf("it was refused, and is there: %v", err)
	}
	a.refuses = nil
	if info, created, err := p.service.Units.Put(trusted.Context(t), "uploaded", uploaded(t, "uploaded")); err != nil || !created || info.Name != "uploaded" {
		t.Errorf("%+v, %v, %v", info, created, err)
	}
	if got := a.calls("uploaded"); got != "accept accept" { //nolint:dupword // it refused once
		t.Errorf("asked for %q", got)
	}
	p.opts.Kinds = run.Kinds{}
	p.stop()
	p.start()
	if _, _, err := p.service.Units.Put(trusted.Context(t), "again", uploaded(t, "again")); !fault.Is(err, fault.Unsupported) {
		t.Errorf("a unit that nobody runs: %v", err)
	}
	if _, _, err := p.service.Submit(trusted.Context(t), spool.Submission{Unit: "worker"}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("a run that nobody makes: %v", err)
	}
}

func TestAHomeThatAKindDoesNotOpenIsFreeAgain(t *testing.T) {
	t.Parallel()
	a := &able{unopened: fault.New(fault.Input, "the model isn't there")}
	opts := Options{Home: t.TempDir(), Kinds: run.Kinds{"capsule": a}}
	if _, err := NewService(opts); !fault.Is(err, fault.Input) {
		t.Fatalf("error %v", err)
	}
	a.unopened = nil
	s, err := NewService(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	l := &able{unopened: fault.New(fault.Input, "the model isn't there")}
	home := t.TempDir()
	if _, err := NewLocal(Options{Home: home, Kinds: run.Kinds{"capsule": l}}); !fault.Is(err, fault.Input) || l.closed.Load() != 1 {
		t.Errorf("error %v, closed %d times", err, l.closed.Load())
	}
	if exists(home, "runs", "*") {
		t.Error("a directory is left")
	}
}

// uploaded is the worker's directory as a tar.
func uploaded(t *testing.T, unit string) *bytes.Buffer {
	t.Helper()
	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	for _, name := range []string{"Dockerfile", "tools.yaml", "agent.yaml", "schema.json"} {
		content := strings.ReplaceAll(workerFiles[name], "worker", unit)
		if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return &archive
}

func TestTheEventsOfARetryAreStored(t *testing.T) {
	t.Parallel()
	s := &stage{attempt: func(_ context.Context, a *actor) (run.Result, error) {
		if a.Run.Attempt == 1 {
			a.Warn("odd")
			return a.fails(api.CategoryTransient)
		}
		return a.succeed()
	}}
	p := newPlays(t, s)
	id := p.submit()
	p.await(id)
	var types []string
	for event, err := range p.service.Feed.Events(trusted.Context(t), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, string(event.Type))
	}
	want := strings.Fields("state state state attempt state state state state state state end") //nolint:dupword // each is another one
	got := slices.DeleteFunc(slices.Clone(types), func(s string) bool { return s == "warning" })
	if !slices.Equal(got, want) || slices.Index(types, "warning") > slices.Index(types, "attempt") || len(types) != len(want)+1 {
		t.Errorf("events %v", types)
	}
}
