package orchestrator

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// newPoolFixture is a fixture with a pool, and with the unit "asker" beside "worker": it does the
// same, but asks for its run before. Sandboxes wait for those units that warm names.
func newPoolFixture(t *testing.T, warm map[string]int, change ...func(*settings)) *fixture {
	t.Helper()
	return newFixture(t, append([]func(*settings){func(o *settings) {
		for name, content := range workerFiles {
			write(t, filepath.Join(o.Sources[0], "asker", name), strings.ReplaceAll(content, "worker", "asker"))
		}
		o.Containers.Pool.Size = 8
		for name, n := range warm {
			o.Units[name] = units.Settings{Given: unit.Given{Warm: &n}}
		}
	}}, change...)...)
}

// loading is the program of "asker" before it asks.
type loading struct {
	dir    map[string]string // what the container sees, by the path there
	stdout io.Writer
	ahead  bool // there is no run yet
}

// asks does what comes before the program's work: it asks for its run until there is an
// answer.
func (w *fixture) asks(ctx context.Context, dir map[string]string, stdout io.Writer) (exit int) {
	w.mu.Lock()
	load := w.load
	w.mu.Unlock()
	if load != nil {
		if exit := load(ctx, loading{dir: dir, stdout: stdout, ahead: !exists(dir["/io"], "input.json")}); exit != 0 {
			return exit
		}
	}
	api := apiClient(filepath.Join(dir["/run/aod"], "aod.sock"))
	for ctx.Err() == nil {
		if answered(ctx, api) {
			return 0
		}
		time.Sleep(2 * time.Millisecond)
	}
	return 137
}

func answered(ctx context.Context, api *http.Client) bool {
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://aod/invocation", nil)
	response, err := api.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err == nil && response.StatusCode == http.StatusOK
}

func exists(parts ...string) bool {
	found, _ := filepath.Glob(filepath.Join(parts...))
	return len(found) > 0
}

func (w *fixture) loads(load func(context.Context, loading) int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.load = load
}

// ended lets a test say what a container does when its program has ended well.
func (w *fixture) ended(program enginetest.Program) enginetest.Program {
	return func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		code := program(ctx, spec, stdout, stderr)
		w.mu.Lock()
		ending := w.ending
		w.mu.Unlock()
		if code != 0 || ending == nil {
			return code
		}
		return ending(code)
	}
}

// poolUnit returns the pool's figures of a unit.
func (w *fixture) poolUnit(unit string) api.PoolUnit {
	for _, pooled := range w.service.Figures.Pool().Units {
		if pooled.Unit == unit {
			return pooled
		}
	}
	return api.PoolUnit{Unit: unit}
}

func (w *fixture) awaitPoolUnit(unit, what string, is func(api.PoolUnit) bool) (pooled api.PoolUnit) {
	w.t.Helper()
	within(w.t, func() bool { pooled = w.poolUnit(unit); return is(pooled) }, func() string {
		return what + ": " + strings.TrimSpace(string(mustJSON(w.service.Figures.Pool())))
	})
	return pooled
}

// stocked returns when so many sandboxes of a unit wait, and no more are to come.
func (w *fixture) stocked(unit string, n int) api.PoolUnit {
	w.t.Helper()
	return w.awaitPoolUnit(unit, "sandboxes wait", func(s api.PoolUnit) bool { return len(s.Waiting) == n && s.Starting == 0 })
}

// loaded returns when a sandbox of the unit waits whose program is loaded.
func (w *fixture) loaded(unit string) api.PoolSandbox {
	w.t.Helper()
	return w.awaitPoolUnit(unit, "a program is loaded", func(s api.PoolUnit) bool { return len(s.Waiting) > 0 && s.Waiting[0].Loaded }).Waiting[0]
}

// asking has the pool learn that the unit "asker" asks for its runs.
func (w *fixture) asking() api.PoolSandbox {
	w.t.Helper()
	w.await(w.submitTo("asker", orders{Mark: "first"}))
	return w.loaded("asker")
}

// wantWaited checks a run that was to get a waiting sandbox.
func (w *fixture) wantWaited(r api.Record) {
	w.t.Helper()
	if r.Outcome != api.Success || r.Container == nil || r.Container.WaitedMS <= 0 || states(r) != "idle starting running completed cleanup idle" {
		w.t.Errorf("record %s", show(r))
	}
	keepsSchema(w.t, r)
}

// wantCold checks a run that was to start a container of its own in the end.
func (w *fixture) wantCold(r api.Record) {
	w.t.Helper()
	if r.Outcome != api.Success || r.Container == nil || r.Container.WaitedMS != 0 || r.Retries != 0 {
		w.t.Errorf("record %s", show(r))
	}
	w.wantLegal(r)
	keepsSchema(w.t, r)
}

// wantLegal checks a run's way through its states (specification "Agent Wrapper", State
// Machine Rules).
func (w *fixture) wantLegal(r api.Record) {
	w.t.Helper()
	next := map[api.State]string{
		api.Idle: "starting cancelled failed", api.Starting: "running failed cancelled timeout", api.Running: "completed failed timeout cancelled",
		api.Completed: "cleanup", api.Failed: "starting cleanup", api.Timeout: "cleanup", api.Cancelled: "cleanup", api.Cleanup: "idle",
	}
	for i, tr := range r.Transitions[1:] {
		from := r.Transitions[i].State
		if !strings.Contains(" "+next[from]+" ", " "+string(tr.State)+" ") {
			w.t.Errorf("from %s to %s in %s", from, tr.State, states(r))
		}
	}
}
