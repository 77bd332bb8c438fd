package run

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
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
