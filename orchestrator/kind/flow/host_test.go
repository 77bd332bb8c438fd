package flow

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// callOf is a call of worker with an input.
func callOf(input map[string]any) flow.Call {
	return flow.Call{Address: "a", Try: 1, Key: "a~1", Unit: "worker", Input: input}
}

func TestWhyACallGaveNothing(t *testing.T) {
	lost := flow.File{Name: "x", SizeBytes: 1, SHA256: digestOf("x")}
	busy := fault.New(fault.Busy, "spent")
	for name, c := range map[string]struct {
		unit     string // "": worker
		input    map[string]any
		starting error
		failure  *handoff.Failure // of a call that was made
		want     flow.CallError
	}{
		"its unit is not granted": {unit: "other", want: flow.CallError{Refused: true, Failure: flow.Failure{Category: permanent, Kind: "grant"}}},
		"its unit is not there":   {unit: "gone", want: flow.CallError{Refused: true, Failure: flow.Failure{Category: permanent, Kind: "not_found", Message: `there is no unit "gone"`, Hint: "aod list has them"}}},
		"its input breaks the contract": {input: map[string]any{"n": "text"}, want: flow.CallError{Refused: true, Failure: flow.Failure{
			Category: permanent, Kind: "invalid_input", Findings: []fault.Finding{{Pointer: "/n", Message: "expected integer, got string"}},
		}}},
		"its input can't be written":   {input: map[string]any{"n": make(chan int)}, want: flow.CallError{Refused: true, Failure: flow.Failure{Category: permanent, Kind: "invalid_input"}}},
		"a file of its input is lost":  {input: map[string]any{"doc": lost}, want: flow.CallError{Failure: flow.Failure{Category: string(api.CategorySystem), Kind: "internal"}}},
		"a rule forbids it for a time": {starting: &handoff.Refusal{Rule: handoff.RuleCalls, Fault: busy}, want: flow.CallError{Refused: true, Failure: flow.Failure{Category: permanent, Kind: "calls", Message: "spent"}}},
		"it took too long to begin":    {starting: fault.New(fault.Deadline, "late"), want: flow.CallError{Failure: flow.Failure{Category: string(api.CategoryTransient), Kind: "deadline", Message: "late"}}},
		"an error that nobody may see": {starting: errBecause, want: flow.CallError{Failure: flow.Failure{Category: string(api.CategorySystem), Kind: "internal"}}},
		"it failed": {
			failure: &handoff.Failure{Category: "AgentError", Kind: "capsule_error", Type: "ValueError", Message: "no", Hint: "mend it", Findings: []fault.Finding{{Message: "m"}}},
			want:    flow.CallError{Run: theCall, Failure: flow.Failure{Category: "AgentError", Kind: "capsule_error", Type: "ValueError", Message: "no", Hint: "mend it", Findings: []fault.Finding{{Message: "m"}}}},
		},
		"it ended without a word": {failure: new(handoff.Failure), want: flow.CallError{Run: theCall}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, `{nodes: {a: {run: worker, next: {error: b}}, b: {run: gone}}, output: {}}`)
			call := callOf(c.input)
			if c.unit != "" {
				call.Unit = c.unit
			}
			if c.starting != nil {
				b.calls.starting = func(int) error { return c.starting }
			}
			if c.failure != nil {
				b.calls.awaiting = failing(c.failure)
			}
			_, err := b.newHost().Call(t.Context(), call)
			var got *flow.CallError
			if !errors.As(err, &got) {
				t.Fatal(err)
			}
			want := c.want
			want.Failure.Node = "a"
			if want.Failure.Message == "" { // whatever it says
				want.Failure.Message, want.Failure.Hint = got.Failure.Message, got.Failure.Hint
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(got.Failure.Message, errBecause.Error()) {
				t.Errorf("it tells %q", got.Failure.Message)
			}
		})
	}
}

func TestACallThatEndedOtherwiseSaysHow(t *testing.T) {
	b := newBench(t, oneCall)
	b.calls.awaiting = func(context.Context) (handoff.Result, error) {
		return handoff.Result{ID: theCall, Ended: true, State: "timeout"}, nil
	}
	var got *flow.CallError
	if _, err := b.newHost().Call(t.Context(), callOf(nil)); !errors.As(err, &got) || got.Failure.Kind != "timeout" || got.Failure.Message != "it ended timeout" || got.Refused {
		t.Errorf("%+v", got)
	}
}

func TestAnErrorThatEndsTheProcessIsNoFailureOfTheCall(t *testing.T) {
	for name, c := range map[string]struct{ cause, starting, want error }{
		"the process ends":           {nil, runtime.ErrDetach, runtime.ErrDetach},
		"the run is cancelled":       {errBecause, fault.New(fault.Internal, "broken"), errBecause},
		"a rule, but it is too late": {run.ErrTimeout, &handoff.Refusal{Rule: handoff.RuleDepth, Fault: fault.New(fault.Conflict, "deep")}, run.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, oneCall)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			b.calls.starting = func(int) error { cancel(c.cause); return c.starting }
			if c.cause == nil {
				b.calls.starting = func(int) error { return c.starting }
			}
			_, err := b.newHost().Call(ctx, callOf(nil))
			if failure := (*flow.CallError)(nil); !errors.Is(err, c.want) || errors.As(err, &failure) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAPlaceInTheQueueIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		starting func(n int) error
		waits    time.Duration // at least
		tries    int           // at least
		kind     string        // of the failure; "": the call is made
	}{
		"a full queue, for as long as it takes": {func(n int) error {
			if n <= 40 {
				return fault.New(fault.Busy, "full")
			}
			return nil
		}, patience, 41, ""},
		"a server that isn't ready, for a while": {func(n int) error {
			if n <= 2 {
				return fault.New(fault.Unavailable, "not yet")
			}
			return nil
		}, firstPause, 3, ""},
		"not a server that never is": {func(int) error { return fault.New(fault.Unavailable, "never") }, patience, 3, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, oneCall)
			made := b.file("d.txt", "all of it")
			h := b.newHost()
			doc := flow.File{Name: "d.txt", SizeBytes: made.SizeBytes, SHA256: made.SHA256}
			if err := h.files.add(t.Context(), made.Path, doc); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				b.calls.starting = c.starting
				h.Record.StartedAt, h.broker = new(time.Now()), h.Broker(b.calls, nil)
				began := time.Now()
				_, err := h.Call(t.Context(), callOf(map[string]any{"doc": doc}))
				if waited := time.Since(began); waited < c.waits || len(b.calls.contents) < c.tries {
					t.Errorf("it waited for %v and tried %d times", waited, len(b.calls.contents))
				}
				var failure *flow.CallError
				if errors.As(err, &failure) != (c.kind != "") || failure != nil && (failure.Failure.Kind != c.kind || failure.Refused) || failure == nil && err != nil {
					t.Errorf("%v", err)
				}
			})
			for i, contents := range b.calls.contents {
				if diff := cmp.Diff(map[string]string{"d.txt": "all of it"}, contents); diff != "" {
					t.Errorf("try %d: %s", i+1, diff)
				}
			}
		})
	}
}

func TestAWaitForAPlaceEndsWithTheRun(t *testing.T) {
	b := newBench(t, oneCall)
	ctx, cancel := context.WithCancelCause(t.Context())
	b.calls.starting = func(int) error { cancel(errBecause); return fault.New(fault.Busy, "full") }
	if _, err := b.newHost().Call(ctx, callOf(nil)); !errors.Is(err, errBecause) || len(b.calls.contents) != 1 {
		t.Errorf("%v after %d tries", err, len(b.calls.contents))
	}
}

func TestASuccessThatCameBeforeTheCancelCounts(t *testing.T) {
	for name, success := range map[string]bool{"a success": true, "a failure doesn't": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, oneCall)
			ctx, cancel := context.WithCancelCause(t.Context())
			b.calls.awaiting = func(ctx context.Context) (handoff.Result, error) { cancel(errBecause); return awaits(ctx) }
			b.calls.inCancel = func() handoff.Result {
				return handoff.Result{ID: theCall, Ended: true, Success: success, Output: json.RawMessage(`{"n":3}`)}
			}
			got, err := b.newHost().Call(ctx, callOf(nil))
			if success && (err != nil || got.Run != theCall) || !success && !errors.Is(err, errBecause) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestWhatACallGave(t *testing.T) {
	for name, c := range map[string]struct {
		gives string
		files []string // with their content for a name
		want  any
		kept  []string // contents
		err   fault.Kind
	}{
		"numbers keep what they are":        {gives: `{"n": 7, "x": 1.5}`, want: map[string]any{"n": int64(7), "x": 1.5}},
		"a file that the contract declares": {gives: `{"doc": "./d/a.txt"}`, files: []string{"d/a.txt"}, want: map[string]any{"doc": flow.File{Name: "d/a.txt", SizeBytes: 7, SHA256: digestOf("d/a.txt")}}, kept: []string{"d/a.txt"}},
		"a file that it doesn't":            {gives: `{"n": "a"}`, files: []string{"a"}, want: map[string]any{"n": "a"}},
		"a name of nothing that was given":  {gives: `{"doc": "b"}`, files: []string{"a"}, want: map[string]any{"doc": "b"}},
		"a name that leads out":             {gives: `{"doc": "../b"}`, files: []string{"../b"}, want: map[string]any{"doc": "../b"}},
		"what looks like a file is none":    {gives: `{"n": {"$file": {"name": "x"}}}`, want: map[string]any{"n": map[string]any{"$file": map[string]any{"name": "x"}}}},
		"nothing":                           {gives: ``, err: fault.Input},
		"no object":                         {gives: `[1]`, err: fault.Input},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, oneCall)
			b.calls.gives = c.gives
			for _, f := range c.files {
				b.calls.files = append(b.calls.files, b.file(f, f))
			}
			h := b.newHost()
			got, err := h.Call(t.Context(), callOf(nil))
			if c.err != 0 {
				if !fault.Is(err, c.err) {
					t.Errorf("%v", err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got.Output); err != nil || diff != "" {
				t.Error(err, diff)
			}
			kept := map[string]string{}
			for _, content := range c.kept {
				kept[digestOf(content)] = content
			}
			if len(kept) == 0 {
				if _, err := os.Stat(h.StateDir()); !os.IsNotExist(err) {
					t.Errorf("there is a directory of files: %v", err)
				}
			} else if diff := cmp.Diff(kept, entries(t, h.StateDir())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFileOfACallThatIsGone(t *testing.T) {
	b := newBench(t, oneCall)
	b.calls.gives, b.calls.files = `{"doc": "a"}`, []handoff.Output{b.file("a", "a")}
	if err := os.Remove(b.calls.files[0].Path); err != nil {
		t.Fatal(err)
	}
	if _, err := b.newHost().Call(t.Context(), callOf(nil)); !fault.Is(err, fault.Internal) {
		t.Errorf("%v", err)
	}
}

func TestACallMayBeTakenAgain(t *testing.T) {
	b := newBench(t, oneCall)
	call := callOf(map[string]any{"n": int64(1)})
	call.Cache = time.Hour
	h := b.newHost()
	if _, err := h.Call(t.Context(), call); err != nil || len(b.host.remembered) != 1 {
		t.Fatalf("%v, remembered %v", err, b.host.remembered)
	}
	var known run.CachedCall
	for known = range b.host.remembered {
	}
	if known.Unit != "worker" || known.Age != time.Hour || len(known.Input) != 64 || b.host.remembered[known] != theCall {
		t.Errorf("remembered %+v", b.host.remembered)
	}
	given := handoff.Result{ID: "earlier", Ended: true, Success: true, Output: json.RawMessage(`{"n":4,"doc":"d"}`), Action: "so", Files: []handoff.Output{b.file("d", "d")}}
	b.host.earlier = map[run.CachedCall]handoff.Result{known: given}
	want := flow.Result{Run: "earlier", Cached: true, Action: "so", Output: map[string]any{"n": int64(4), "doc": flow.File{Name: "d", SizeBytes: 1, SHA256: digestOf("d")}}}
	got, err := h.Call(t.Context(), call)
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(b.calls.started) != 1 {
		t.Errorf("%s, %v, %d calls", diff, err, len(b.calls.started))
	}
	for name, change := range map[string]func(*flow.Call){
		"with another input":          func(c *flow.Call) { c.Input = map[string]any{"n": int64(2)} },
		"with another age":            func(c *flow.Call) { c.Cache = time.Minute },
		"where nothing is to be kept": func(c *flow.Call) { c.Cache = 0 },
		"by a text for the number": func(c *flow.Call) {
			c.Input = map[string]any{"n": int64(1), "x": "1"}
		},
	} {
		other, before := call, len(b.calls.started)
		change(&other)
		if got, err := h.Call(t.Context(), other); err != nil || got.Cached || len(b.calls.started) != before+1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if len(b.host.remembered) != 4 {
		t.Errorf("remembered %v", b.host.remembered)
	}
}

func TestWhatIsGoneOrFailedIsNotTakenAgain(t *testing.T) {
	b := newBench(t, oneCall)
	call := callOf(nil)
	call.Cache = time.Hour
	known, err := b.newHost().cachedCall(&handoff.Unit{Name: call.Unit}, call)
	if err != nil {
		t.Fatal(err)
	}
	lost := handoff.Output{Name: "d", Path: filepath.Join(t.TempDir(), "gone"), SizeBytes: 1, SHA256: digestOf("d")}
	b.host.earlier = map[run.CachedCall]handoff.Result{known: {ID: "earlier", Ended: true, Success: true, Output: json.RawMessage(`{"doc":"d"}`), Files: []handoff.Output{lost}}}
	if got, err := b.newHost().Call(t.Context(), call); err != nil || got.Cached || got.Run != theCall {
		t.Errorf("%+v, %v", got, err)
	}
	b.host.remembered, b.host.earlier, b.calls.awaiting = nil, nil, failing(&handoff.Failure{Kind: "k"})
	if _, err := b.newHost().Call(t.Context(), call); err == nil || len(b.host.remembered) > 0 {
		t.Errorf("%v, remembered %v", err, b.host.remembered)
	}
}
