package orchestrator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

func TestLocalsShareADataDirectory(t *testing.T) {
	t.Parallel()
	home, gate := t.TempDir(), make(chan struct{})
	s, other := &stage{}, &able{}
	s.attempt = func(ctx context.Context, a *actor) (run.Result, error) { return a.waits(ctx, gate) }
	one := playLocal(t, s, Options{Home: home})
	running := make(chan struct{})
	req := playRequest(t, "u")
	req.Observe = func(e run.Event) {
		if e.State != nil && e.State.State == api.Running {
			close(running)
		}
	}
	var first sync.WaitGroup
	first.Go(func() {
		if ended, err := one.Run(trusted.Context(t), req); err != nil || ended.Record.Outcome != api.Success {
			t.Errorf("%v %s", err, show(ended.Record))
		}
	})
	<-running
	two := playLocal(t, other, Options{Home: home})
	if swept, err := two.Sweep(trusted.Context(t)); err != nil || len(swept) > 0 || len(other.asked) > 0 {
		t.Errorf("swept %v of one that lives: %v, %v", swept, err, other.asked)
	}
	if ended, err := two.Run(trusted.Context(t), playRequest(t, "u")); err != nil || ended.Record.Outcome != api.Success {
		t.Errorf("%v %s", err, show(ended.Record))
	}
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	close(gate)
	first.Wait()
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if exists(home, "runs", "*") {
		t.Error("directories are left")
	}
}

func TestALocalSweepsWhatADeadOneLeft(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	data, err := openDataDir(home)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := data.make("dead")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(runsIn(dead.path), "begun", "1", "io", "x"), "x")
	write(t, filepath.Join(runsIn(dead.path), "accepted", "input", "x"), "x")
	write(t, filepath.Join(runsIn(dead.path), "accepted", layout.Log), "x")
	a := &able{}
	l := playLocal(t, a, Options{Home: home})
	if swept, err := l.Sweep(trusted.Context(t)); err != nil || len(swept) > 0 {
		t.Errorf("swept %v of one that lives: %v", swept, err)
	}
	if err := dead.release(); err != nil {
		t.Fatal(err)
	}
	a.sweeps = func(string) error { return errAway }
	if swept, err := l.Sweep(trusted.Context(t)); !errors.Is(err, errAway) || len(swept) > 0 || !exists(dead.path, "runs", "begun", "1") {
		t.Errorf("swept %v while the engine is away: %v", swept, err)
	}
	a.sweeps = nil
	swept, err := l.Sweep(trusted.Context(t))
	if err != nil || len(swept) != 2 || exists(dead.path) {
		t.Errorf("swept %v, %v", swept, err)
	}
	if a.calls("begun") != "sweep sweep" || //nolint:dupword // it failed once
		a.calls("accepted") != "" {
		t.Errorf("asked for %v", a.asked)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatLocalCouldNotRemoveIsLeftToTheNextSweep(t *testing.T) {
	t.Parallel()
	home, s := t.TempDir(), &stage{remove: failing(1, fault.New(fault.Unavailable, "the engine is away"))}
	l := playLocal(t, s, Options{Home: home})
	ended, err := l.Run(trusted.Context(t), playRequest(t, "u"))
	id := ended.Record.ID
	if err != nil || ended.Record.Outcome != api.Success || !hasWarning(ended.Record, "cleaning up: the engine is away") {
		t.Errorf("%v %s", err, show(ended.Record))
	}
	wantCalls(t, s, id, "attempt settle remove") // once: the command ends
	wantStates(t, ended.Record, "idle starting running completed cleanup idle")
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if !exists(home, "runs", "*", "runs", id, "1") {
		t.Fatal("nothing tells the next process what there is to sweep")
	}
	a := &able{}
	next := playLocal(t, a, Options{Home: home})
	if swept, err := next.Sweep(trusted.Context(t)); err != nil || len(swept) != 1 || swept[0] != id || a.calls(id) != "sweep" {
		t.Errorf("swept %v, %v: %s", swept, err, a.calls(id))
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if exists(home, "runs", "*") {
		t.Error("directories are left")
	}
}

func TestAnAttemptsDirectoryIsKeptForALook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		attempt func(context.Context, *actor) (run.Result, error)
		keep    bool
		kept    bool
	}{
		{"where that is wanted", nil, true, true},
		{"not otherwise", nil, false, false},
		{"where there is one", func(_ context.Context, a *actor) (run.Result, error) {
			return run.Result{}, errors.Join(a.Enter(api.Starting, ""), errAway)
		}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			l := playLocal(t, &stage{attempt: c.attempt}, Options{Home: home})
			req := playRequest(t, "u")
			req.Keep = c.keep
			ended, _ := l.Run(trusted.Context(t), req)
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			want := ""
			if c.kept {
				want = filepath.Join(home, "kept", ended.Record.ID)
			}
			if ended.KeptAt != want || exists(home, "kept", "*") != c.kept || exists(home, "runs", "*") {
				t.Errorf("kept at %q, want %q", ended.KeptAt, want)
			}
		})
	}
}

func TestALocalsKindKnowsWhereOutputGoes(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	s := &stage{attempt: func(_ context.Context, a *actor) (run.Result, error) {
		if a.OutDir != out || a.Durable || a.ID != "my-own-id" {
			t.Errorf("out %q, durable %v, id %s", a.OutDir, a.Durable, a.ID)
		}
		return a.succeed()
	}}
	l := playLocal(t, s, Options{})
	defer l.Close()
	req := playRequest(t, "u")
	req.OutDir, req.ID = out, "my-own-id"
	if _, err := l.Run(trusted.Context(t), req); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is made without output files: %v", err)
	}
}

func TestCallsRunAtOnceBelowOneSlot(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	both.Add(2)
	s := &stage{}
	s.attempt = func(ctx context.Context, a *actor) (run.Result, error) {
		if a.Record.Unit == "called" {
			if err := a.begin(); err != nil {
				return run.Result{}, err
			}
			both.Done()
			both.Wait() // for the other one
			return a.succeed()
		}
		if err := a.begin(); err != nil {
			return run.Result{}, err
		}
		calls := a.Calls()
		defer calls.End(run.ErrCallerEnded)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if result := call(ctx, t, calls); !result.Success || result.State != string(api.Completed) {
					t.Errorf("%+v", result)
				}
			})
		}
		all.Wait()
		return a.succeed()
	}
	l := playLocal(t, s, Options{Concurrency: 2})
	defer l.Close()
	record := runCaller(t, l)
	if record.Outcome != api.Success || len(record.Calls) != 2 || record.Calls[0].Outcome != api.Success || record.Calls[0].Unit != "called" {
		t.Errorf("record %s", show(record))
	}
	if child, err := l.runs.Get(trusted.Context(t), record.Calls[0].ID); err != nil || child.Parent != record.ID || child.Root != record.ID {
		t.Errorf("%v %s", err, show(child))
	}
}

func TestCallsEndWithTheirCaller(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan api.Record, 1)
	s := &stage{}
	s.attempt = func(ctx context.Context, a *actor) (run.Result, error) {
		if a.Record.Unit == "called" {
			close(begun)
			result, err := a.waits(ctx, nil)
			ended <- a.Record
			return result, err
		}
		if err := a.begin(); err != nil {
			return run.Result{}, err
		}
		if _, err := a.Calls().Start(ctx, callTo(t)); err != nil {
			return run.Result{}, err
		}
		<-begun
		return a.succeed() // without a look at what it called
	}
	l := playLocal(t, s, Options{})
	defer l.Close()
	record := runCaller(t, l)
	<-ended
	if record.Outcome != api.Success || len(record.Calls) != 1 || record.Calls[0].Outcome != api.WasCancelled {
		t.Errorf("record %s", show(record))
	}
	within(t, func() bool {
		child, err := l.runs.Get(trusted.Context(t), record.Calls[0].ID)
		return err == nil && run.Over(child)
	}, func() string { return "the call goes on" })
}

// runCaller runs the unit "caller", which may call "called".
func runCaller(t *testing.T, l *Local) api.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(trusted.Context(t), testkit.Patience)
	defer cancel()
	req := playRequest(t, "caller")
	req.Unit.Policy.Grants = []string{"called"}
	req.Find = func(_ context.Context, name string) (*unit.Unit, error) { return played(t, name), nil }
	ended, err := l.Run(ctx, req)
	if err != nil {
		t.Error(err)
	}
	return ended.Record
}

func callTo(t *testing.T) handoff.Call {
	return handoff.Call{Target: &handoff.Unit{Name: "called"}, Args: payloadOf(t, `{}`)}
}

func call(ctx context.Context, t *testing.T, calls run.ChildRuns) handoff.Result {
	id, err := calls.Start(ctx, callTo(t))
	if err != nil {
		t.Error(err)
		return handoff.Result{}
	}
	result, err := calls.Await(ctx, id)
	if err != nil {
		t.Error(err)
	}
	return result
}
