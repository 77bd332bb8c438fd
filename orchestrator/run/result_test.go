package run

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/runtime"
)

func TestEachCauseOfAnEndHasItsResult(t *testing.T) {
	exit := 143
	ended := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	live := t.Context()
	for _, c := range []struct {
		name     string
		got      Result
		state    api.State
		outcome  api.Outcome
		category api.Category
		kind     string
		says     string
		exit     *int
	}{
		{"its own time", TimedOut(&exit, 90*time.Second), api.Timeout, api.TimedOut, api.CategoryAgent, "timeout", "stopped after 1m30s, its time limit", &exit},
		{"its caller's time", Stopped(&exit, ErrDeadline), api.Timeout, api.TimedOut, api.CategoryAgent, "timeout", "the time of the run that called it was up", &exit},
		{"its caller's end", Stopped(nil, ErrCallerEnded), api.Cancelled, api.WasCancelled, api.CategoryPermanent, "cancelled", "the run was cancelled: its caller has ended", nil},
		{"a wish with a reason", Stopped(nil, Cancelled("not wanted")), api.Cancelled, api.WasCancelled, api.CategoryPermanent, "cancelled", "the run was cancelled: not wanted", nil},
		{"a wish without one", Stopped(nil, Cancelled("")), api.Cancelled, api.WasCancelled, api.CategoryPermanent, "cancelled", "the run was cancelled", nil},
		{"nobody knows why", Stopped(nil, nil), api.Cancelled, api.WasCancelled, api.CategoryPermanent, "cancelled", "the run was cancelled", nil},
		{"an engine that is away", Fault(live, fault.New(fault.Unavailable, "the engine is away")), api.Failed, api.SystemError, api.CategoryTransient, "unavailable", "the engine is away", nil},
		{"an engine that takes too long", Fault(live, fault.New(fault.Deadline, "slow")), api.Failed, api.SystemError, api.CategoryTransient, "deadline", "slow", nil},
		{"an engine that is busy", Fault(live, fault.New(fault.Busy, "busy")), api.Failed, api.SystemError, api.CategoryTransient, "busy", "busy", nil},
		{"a mistake of ours", Fault(live, errors.New("secret")), api.Failed, api.SystemError, api.CategorySystem, "internal", "", nil},
		{"a wrong capsule", Fault(live, fault.New(fault.Capsule, "no CMD")), api.Failed, api.SystemError, api.CategoryPermanent, "invalid_capsule", "no CMD", nil},
		{"an input that only the program knows to be wrong", Fault(live, fault.New(fault.Input, "no such model")), api.Failed, api.InvalidInput, api.CategoryPermanent, "invalid_input", "no such model", nil},
		{"the end of its context before there was a program", Fault(ended(ErrDeadline), errors.New("x")), api.Timeout, api.TimedOut, api.CategoryAgent, "timeout", "when the time of the run that called it was up", nil},
		{"a wish before there was a program", Fault(ended(Cancelled("late")), errors.New("x")), api.Cancelled, api.WasCancelled, api.CategoryPermanent, "cancelled", "the run was cancelled: late", nil},
		{"a restart that it doesn't survive", Unrecoverable(fault.New(fault.NotFound, "no version 7")), api.Failed, api.SystemError, api.CategoryPermanent, "not_found", "can't go on after a restart: no version 7", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.got
			if got.State != c.state || got.Outcome != c.outcome || got.ExitCode != c.exit {
				t.Errorf("%+v", got)
			}
			if got.Failure == nil || got.Failure.Category != c.category || got.Failure.Kind != c.kind {
				t.Fatalf("failure %+v", got.Failure)
			}
			if !strings.Contains(got.Failure.Message, c.says) || got.Reason() != got.Failure.Message {
				t.Errorf("says %q, its reason is %q", got.Failure.Message, got.Reason())
			}
			if strings.Contains(got.Failure.Message, "secret") {
				t.Errorf("shows a private cause: %q", got.Failure.Message)
			}
		})
	}
}

func TestAWishWithoutAReasonSaysNothingMore(t *testing.T) {
	if got := Stopped(nil, Cancelled("")).Failure.Message; got != "the run was cancelled" {
		t.Errorf("says %q", got)
	}
}

func TestAFaultTellsAllFindings(t *testing.T) {
	err := fault.New(fault.Input, "wrong").WithHint("look").WithFindings([]fault.Finding{{Pointer: "/a", Message: "x"}, {Pointer: "/b", Message: "y"}})
	got := Fault(t.Context(), err).Failure
	if got.Hint != "look" || len(got.Findings) != 2 || got.Findings[1].Pointer != "/b" {
		t.Errorf("%+v", got)
	}
}

func TestOnlyWhatMayPassIsTriedAgain(t *testing.T) {
	transient := map[fault.Kind]bool{fault.Unavailable: true, fault.Deadline: true, fault.Busy: true}
	for _, kind := range []fault.Kind{
		fault.Internal, fault.Input, fault.Capsule, fault.NotFound, fault.TooLarge, fault.Build, fault.Unavailable, fault.Unsupported,
		fault.BadRequest, fault.Unauthorized, fault.Forbidden, fault.Conflict, fault.Busy, fault.Cancelled, fault.Deadline,
	} {
		got := CategoryOf(kind)
		if (got == api.CategoryTransient) != transient[kind] || (got == api.CategorySystem) != (kind == fault.Internal) {
			t.Errorf("%v is %s", kind, got)
		}
	}
}

func TestAnEndIsInTheRecord(t *testing.T) {
	t.Run("with success", func(t *testing.T) {
		host := &fakeHost{}
		var told Event
		r := runIn(api.Running)
		r.Record.CreatedAt = time.Now().Add(-time.Second)
		r.LedBy(host, func(e Event) { told = e })
		exit := 0
		err := r.End(Result{State: api.Completed, Outcome: api.Success, ExitCode: &exit, Output: json.RawMessage(`{"n":1}`), Files: []api.File{{Name: "f"}}})
		got := r.Record
		if err != nil || got.State != api.Completed || got.Outcome != api.Success || *got.ExitCode != 0 || got.Error != nil || string(got.Output) != `{"n":1}` || len(got.Files) != 1 {
			t.Errorf("%v %+v", err, got)
		}
		if got.FinishedAt == nil || got.Timings.Total < 1000 || got.Timings.Total > 60_000 {
			t.Errorf("finished %v after %v ms", got.FinishedAt, got.Timings.Total)
		}
		if told.Outcome != "" || told.Files != 1 || host.saved[0].Reason != string(api.Success) {
			t.Errorf("told %+v, saved %+v", told, host.saved)
		}
	})
	t.Run("with a failure", func(t *testing.T) {
		host := &fakeHost{}
		var told Event
		r := runIn(api.Running)
		r.Record.Files = []api.File{}
		r.LedBy(host, func(e Event) { told = e })
		err := r.End(Failed(api.OutOfMemory, 137, &api.RunError{Category: api.CategoryAgent, Kind: "memory_limit", Message: "too much"}))
		if err != nil || r.Record.State != api.Failed || *r.Record.ExitCode != 137 || r.Record.Error.Kind != "memory_limit" || r.Record.Files == nil {
			t.Errorf("%v %+v", err, r.Record)
		}
		if told.Outcome != "memory_limit" || host.saved[0].Reason != "too much" {
			t.Errorf("told %+v, saved %+v", told, host.saved)
		}
	})
}

func TestWhatToDoAboutALimitDependsOnWhoSetIt(t *testing.T) {
	failed := func(kind, key string) api.RunError {
		return api.RunError{Kind: kind, Hint: "raise limits." + key + " in agent.yaml if it needs that much"}
	}
	full := capsule.Limits{Timeout: time.Minute, MemoryBytes: 5, PIDs: 6, OutputBytes: 7}
	rules := map[string]string{"timeout": "policy.timeout", "memory": "policy.memory", "pids": "policy.pids", "output": "policy.output"}
	for name, c := range map[string]struct {
		failure api.RunError
		limits  runtime.Limits
		policy  unit.Policy
		want    string
	}{
		"the unit's own":                    {failed("memory_limit", "memory"), runtime.Limits{MemoryBytes: 5}, unit.Policy{}, "raise limits.memory in agent.yaml if it needs that much"},
		"what the operator has given":       {failed("memory_limit", "memory"), runtime.Limits{MemoryBytes: 5}, unit.Policy{Given: capsule.Limits{MemoryBytes: 5}}, "raise unit.u.limits.memory in the server's file if it needs that much"},
		"memory at the operator's bound":    {failed("memory_limit", "memory"), runtime.Limits{MemoryBytes: 5}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "it has all that policy.memory allows, which the operator can raise"},
		"memory below it":                   {failed("memory_limit", "memory"), runtime.Limits{MemoryBytes: 4}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "raise limits.memory in agent.yaml if it needs that much"},
		"processes at the operator's bound": {failed("pids_limit", "pids"), runtime.Limits{PIDs: 6}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "it has all that policy.pids allows, which the operator can raise"},
		"output at the operator's bound":    {failed("output_limit", "output"), runtime.Limits{OutputBytes: 7}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "it has all that policy.output allows, which the operator can raise"},
		"a bound of no rule":                {failed("pids_limit", "pids"), runtime.Limits{PIDs: 6}, unit.Policy{Bounds: unit.Bounds{Limits: full}}, "raise limits.pids in agent.yaml if it needs that much"},
		"its time, at the bound":            {*TimedOut(nil, time.Minute).Failure, runtime.Limits{Timeout: time.Minute}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "it has all that policy.timeout allows, which the operator can raise"},
		"its time, below it":                {*TimedOut(nil, time.Second).Failure, runtime.Limits{Timeout: time.Second}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, moreTime},
		"its caller's time":                 {*Stopped(nil, ErrDeadline).Failure, runtime.Limits{Timeout: time.Minute}, unit.Policy{Bounds: unit.Bounds{Limits: full, Rules: rules}}, "give the caller more"},
		"no limit at all":                   {api.RunError{Kind: "capsule_error", Hint: "look into the log"}, runtime.Limits{}, unit.Policy{}, "look into the log"},
	} {
		r := runIn(api.Running)
		r.Unit, r.Limits = &unit.Unit{Name: "u", Policy: c.policy}, c.limits
		r.LedBy(&fakeHost{}, nil)
		if err := r.End(Failed(api.CapsuleError, 1, &c.failure)); err != nil || !strings.HasPrefix(r.Record.Error.Hint, c.want) {
			t.Errorf("%s: %q, %v", name, r.Record.Error.Hint, err)
		}
	}
}

func TestTheLimitsInForce(t *testing.T) {
	asks := capsule.Limits{Timeout: 10 * time.Second, MemoryBytes: 10, CPUs: 1, PIDs: 10}
	fallback := runtime.Limits{Timeout: time.Minute, MemoryBytes: 99, CPUs: 9, PIDs: 99, OutputBytes: 99, OutputFiles: 99, LogBytes: 99}
	for name, c := range map[string]struct {
		asked  time.Duration
		bounds capsule.Limits
		want   runtime.Limits
	}{
		"the unit's, else the fallback":  {0, capsule.Limits{}, runtime.Limits{Timeout: 10 * time.Second, MemoryBytes: 10, CPUs: 1, PIDs: 10, OutputBytes: 99, OutputFiles: 99, LogBytes: 99}},
		"the request's time before it":   {time.Hour, capsule.Limits{}, runtime.Limits{Timeout: time.Hour, MemoryBytes: 10, CPUs: 1, PIDs: 10, OutputBytes: 99, OutputFiles: 99, LogBytes: 99}},
		"but none beyond the bounds":     {time.Hour, capsule.Limits{Timeout: 20 * time.Second, MemoryBytes: 5}, runtime.Limits{Timeout: 20 * time.Second, MemoryBytes: 5, CPUs: 1, PIDs: 10, OutputBytes: 99, OutputFiles: 99, LogBytes: 99}},
		"and the fallback is bounded so": {0, capsule.Limits{OutputBytes: 7, OutputFiles: 8, LogBytes: 9}, runtime.Limits{Timeout: 10 * time.Second, MemoryBytes: 10, CPUs: 1, PIDs: 10, OutputBytes: 7, OutputFiles: 8, LogBytes: 9}},
	} {
		req := Request{Unit: &unit.Unit{Policy: unit.Policy{Limits: asks, Bounds: unit.Bounds{Limits: c.bounds}}}, Timeout: c.asked}
		if diff := cmp.Diff(c.want, req.Limits(fallback)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
