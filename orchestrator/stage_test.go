package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/feature"
	"github.com/agent-on-demand/aod/orchestrator/feature/artifacts"
	"github.com/agent-on-demand/aod/orchestrator/feature/messages"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/runtime"
)

// stage is a kind of unit without anything outside of this process: its attempts do what a
// test says, and it remembers what the loop asked it for.
type stage struct {
	// attempt is an attempt that begins or, with resumed, goes on; nil succeeds.
	attempt func(ctx context.Context, a *actor) (run.Result, error)
	settle  func(a *actor)
	remove  func(a *actor) error
	check   func(req run.Request) error

	mu    sync.Mutex
	asked map[string][]string // by run
}

// actor makes the attempts of one run on a stage.
type actor struct {
	*run.Run
	stage   *stage
	resumed bool
}

// Check implements run.Kind.
func (s *stage) Check(req run.Request, _ run.Input) error {
	if s.check != nil {
		return s.check(req)
	}
	return nil
}

// Execution implements run.Kind.
func (s *stage) Execution(r *run.Run) run.Execution { return &actor{Run: r, stage: s} }

func (s *stage) note(id, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = map[string][]string{}
	}
	s.asked[id] = append(s.asked[id], what)
}

// calls are what the loop asked a run's execution for, in their order.
func (s *stage) calls(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked[id], " ")
}

// Attempt implements run.Execution.
func (a *actor) Attempt(ctx context.Context) (run.Result, error) {
	a.stage.note(a.ID, "attempt")
	return a.act(ctx)
}

// Resume implements run.Execution.
func (a *actor) Resume(ctx context.Context) (run.Result, error) {
	a.stage.note(a.ID, "resume")
	a.resumed = true
	return a.act(ctx)
}

func (a *actor) act(ctx context.Context) (run.Result, error) {
	if a.stage.attempt == nil {
		return a.succeed()
	}
	return a.stage.attempt(ctx, a)
}

// Settle implements run.Execution.
func (a *actor) Settle(context.Context) {
	a.stage.note(a.ID, "settle")
	if a.stage.settle != nil {
		a.stage.settle(a)
	}
}

// Discard implements run.Execution.
func (a *actor) Discard(context.Context) { a.stage.note(a.ID, "discard") }

// Remove implements run.Execution.
func (a *actor) Remove(context.Context) error {
	a.stage.note(a.ID, "remove")
	if a.stage.remove != nil {
		return a.stage.remove(a)
	}
	return nil
}

// Release implements run.Execution.
func (a *actor) Release() { a.stage.note(a.ID, "release") }

// begin enters Starting and Running, as far as an earlier process hasn't.
func (a *actor) begin() error {
	if a.State() != api.Starting && a.State() != api.Running {
		if err := a.Enter(api.Starting, ""); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(a.AttemptDir(), 0o700); err != nil {
		return err
	}
	if a.State() == api.Running {
		return nil
	}
	return a.Enter(api.Running, "")
}

func (a *actor) succeed() (run.Result, error) {
	if err := a.begin(); err != nil {
		return run.Result{}, err
	}
	exit := 0
	return run.Result{State: api.Completed, Outcome: api.Success, ExitCode: &exit, Output: json.RawMessage(`{"mark":"done"}`)}, nil
}

// fails is an attempt whose program ends with a failure.
func (a *actor) fails(category api.Category) (run.Result, error) {
	if err := a.begin(); err != nil {
		return run.Result{}, err
	}
	return run.Failed(api.CapsuleError, 3, &api.RunError{Category: category, Kind: "agent_error", Message: "it went wrong"}), nil
}

// waits is an attempt that goes on until a gate opens, or its context ends.
func (a *actor) waits(ctx context.Context, gate <-chan struct{}) (run.Result, error) {
	if err := a.begin(); err != nil {
		return run.Result{}, err
	}
	select {
	case <-gate:
		return a.succeed()
	case <-ctx.Done():
	}
	if cause := context.Cause(ctx); errors.Is(cause, runtime.ErrDetach) {
		return run.Result{}, cause
	}
	return run.Stopped(nil, context.Cause(ctx)), nil
}

// playLocal is a Local whose only kind is a stage.
func playLocal(t *testing.T, kind run.Kind, opts Options) *Local {
	t.Helper()
	if opts.Home == "" {
		opts.Home = t.TempDir()
	}
	opts.Kinds = run.Kinds{"played": kind}
	l, err := NewLocal(opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// played is a unit of a stage.
func played(t *testing.T, name string) *unit.Unit {
	t.Helper()
	agreed, findings := contract.Parse([]byte(workerFiles["schema.json"]))
	if agreed == nil {
		t.Fatal(findings)
	}
	return &unit.Unit{Name: name, Kind: "played", Contract: agreed, Definition: schemaOf(workerFiles["schema.json"])}
}

type schemaOf string

// Schema implements unit.Definition.
func (s schemaOf) Schema() ([]byte, error) { return []byte(s), nil }

// playRequest asks Local for a run of a stage's unit.
func playRequest(t *testing.T, name string) Request {
	t.Helper()
	input, err := contract.Decode([]byte(`{}`), 0)
	if err != nil {
		t.Fatal(err)
	}
	return Request{Request: run.Request{Unit: played(t, name), Input: input}}
}

// plays is a world in which Services come and go over one home, whose capsules a stage runs.
type plays struct {
	t       *testing.T
	opts    Options
	service *Service
}

func newPlays(t *testing.T, kind run.Kind, change ...func(*Options)) *plays {
	t.Helper()
	sources := t.TempDir()
	for name, content := range workerFiles {
		write(t, sources+"/worker/"+name, content)
	}
	p := &plays{t: t, opts: Options{
		Home: t.TempDir(), Sources: []string{sources}, Kinds: run.Kinds{string(unit.Capsule): kind}, Concurrency: 4, RetryDelay: time.Millisecond, Retries: 2, Features: []feature.Feature{artifacts.New(), messages.New()},
	}}
	for _, c := range change {
		c(&p.opts)
	}
	p.start()
	t.Cleanup(func() { _ = p.service.Close() }) // what a test has closed already
	return p
}

func (p *plays) start() {
	p.t.Helper()
	s, err := NewService(p.opts)
	if err != nil {
		p.t.Fatal(err)
	}
	p.service = s
	if err := s.Start(trusted.Context(p.t)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plays) stop() {
	p.t.Helper()
	if err := p.service.Close(); err != nil {
		p.t.Error(err)
	}
}

func (p *plays) submit() string {
	p.t.Helper()
	record, _, err := p.service.Submit(trusted.Context(p.t), spool.Submission{Unit: "worker"})
	if err != nil {
		p.t.Fatal(err)
	}
	return record.ID
}

func (p *plays) until(id string, is func(api.Record) bool) (record api.Record) {
	p.t.Helper()
	within(p.t, func() bool {
		var err error
		if record, err = p.service.Runs.Get(trusted.Context(p.t), id); err != nil {
			p.t.Fatal(err)
		}
		return is(record)
	}, func() string { return show(record) })
	return record
}

// await returns a run at its very end, when the loop has done with it.
func (p *plays) await(id string) api.Record {
	p.t.Helper()
	within(p.t, func() bool { return p.service.jobs.get(id) == nil }, func() string { return "the loop goes on with " + id })
	return p.until(id, run.Over)
}

func wantCalls(t *testing.T, s *stage, id, want string) {
	t.Helper()
	if got := s.calls(id); got != want {
		t.Errorf("the loop asked for %q, want %q", got, want)
	}
}

func wantStates(t *testing.T, r api.Record, want string) {
	t.Helper()
	if got := states(r); got != want {
		t.Errorf("the run went through %q, want %q", got, want)
	}
}

// failing returns a function that returns an error so many times, and then none.
func failing(times int, err error) func(*actor) error {
	var mu sync.Mutex
	return func(*actor) error {
		mu.Lock()
		defer mu.Unlock()
		if times--; times >= 0 {
			return err
		}
		return nil
	}
}

var errAway = fault.New(fault.Unavailable, "it is away")

func hasWarning(r api.Record, part string) bool {
	return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, part) })
}

func payloadOf(t *testing.T, text string) contract.Payload {
	t.Helper()
	p, err := contract.Decode([]byte(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
