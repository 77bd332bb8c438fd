package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/runtime"
)

// Result is the end of an attempt with its output. It becomes the end of the run unless
// another attempt follows.
type Result struct {
	State    api.State // Completed, Failed, Timeout or Cancelled
	Outcome  api.Outcome
	ExitCode *int          // nil: its program never ran to an end, or it has none
	Failure  *api.RunError // nil with success
	Output   json.RawMessage
	Files    []api.File
}

// Reason returns the reason for the run's transition to its end.
func (r Result) Reason() string {
	if r.Failure != nil {
		return r.Failure.Message
	}
	return string(r.Outcome)
}

// Failed is the result of a program that failed with an exit code.
func Failed(outcome api.Outcome, exit int, failure *api.RunError) Result {
	return Result{State: api.Failed, Outcome: outcome, ExitCode: &exit, Failure: failure}
}

// Delivered lists the files of the output of a run, each with the field that names it, and with its
// place where the user has asked for one.
func (r *Run) Delivered(files []runtime.File, output contract.Payload) []api.File {
	pointers := map[string]string{}
	for _, ref := range r.Unit.Contract.Output.FileRefs(output) {
		pointers[ref.Name] = ref.Pointer
	}
	all := make([]api.File, 0, len(files))
	for _, f := range files {
		file := api.File{Name: f.Name, SizeBytes: f.SizeBytes, SHA256: f.SHA256}
		if r.OutDir != "" {
			file.Path = f.Path
		}
		if pointer, ok := pointers[f.Name]; ok {
			file.Pointer = &pointer
		}
		all = append(all, file)
	}
	return all
}

const moreTime = "give it more with --timeout, or limits.timeout in agent.yaml"

// TimedOut is the result of a run that was stopped at its own time limit.
func TimedOut(exit *int, limit time.Duration) Result {
	return Result{State: api.Timeout, Outcome: api.TimedOut, ExitCode: exit, Failure: &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.TimedOut),
		Message: fmt.Sprintf("the run was stopped after %v, its time limit", limit),
		Hint:    moreTime,
	}}
}

// Stopped is the result of a run whose context ended with a cause.
func Stopped(exit *int, cause error) Result {
	if errors.Is(cause, ErrDeadline) {
		return Result{State: api.Timeout, Outcome: api.TimedOut, ExitCode: exit, Failure: &api.RunError{
			Category: api.CategoryAgent, Kind: string(api.TimedOut),
			Message: "the run was stopped when the time of the run that called it was up",
			Hint:    "give the caller more with --timeout, or limits.timeout in its agent.yaml",
		}}
	}
	message := "the run was cancelled"
	if cause != nil && !errors.Is(cause, context.Canceled) {
		message += ": " + cause.Error()
	}
	return Result{State: api.Cancelled, Outcome: api.WasCancelled, ExitCode: exit, Failure: &api.RunError{
		Category: api.CategoryPermanent, Kind: string(api.WasCancelled), Message: message,
	}}
}

// Fault is the result of an attempt that ended with an error that the unit is not to blame
// for: a fault, or the end of ctx before the program started.
func Fault(ctx context.Context, err error) Result {
	if ctx.Err() != nil {
		return Stopped(nil, context.Cause(ctx))
	}
	public := fault.Public(err)
	outcome := api.SystemError
	if public.Kind == fault.Input { // an Agentic Unit's: its model card is known by then
		outcome = api.InvalidInput
	}
	return Result{State: api.Failed, Outcome: outcome, Failure: &api.RunError{
		Category: CategoryOf(public.Kind), Kind: public.Kind.String(),
		Message: public.Msg, Hint: public.Hint, Findings: public.Findings,
	}}
}

// Unreadable is the result of a run of which what is stored can't be read.
func Unreadable(err error) Result {
	public := fault.Public(err)
	return Result{State: api.Failed, Outcome: api.SystemError, Failure: &api.RunError{
		Category: api.CategorySystem, Kind: public.Kind.String(), Message: public.Msg, Hint: public.Hint,
	}}
}

// Unrecoverable is the result of a run that can't go on after a restart.
func Unrecoverable(err error) Result {
	public := fault.Public(err)
	return Result{State: api.Failed, Outcome: api.SystemError, Failure: &api.RunError{
		Category: api.CategoryPermanent, Kind: public.Kind.String(),
		Message: "the run can't go on after a restart: " + public.Msg, Hint: public.Hint,
	}}
}

// CategoryOf returns whether a retry can help after a fault.
func CategoryOf(kind fault.Kind) api.Category {
	switch kind {
	case fault.Unavailable, fault.Deadline, fault.Busy:
		return api.CategoryTransient
	case fault.Internal:
		return api.CategorySystem
	}
	return api.CategoryPermanent
}

// Corrupt is the fault of something stored that can't be decoded: another program wrote to the store, or
// its disk failed in a way that no check finds.
func Corrupt(err error) error {
	return fault.Wrap(fault.Internal, err, "what is stored of this run can't be read").
		WithHint("other runs aren't touched by it; if there are more such runs, look after the disk of the data " +
			"directory")
}

// boundHint returns what to do about a limit that the operator has set or bounds, or the hint
// that the failure has: more in agent.yaml would change nothing.
func (r *Run) boundHint(failure api.RunError) string {
	key, bounded := r.limitOf(failure)
	if rule := r.Unit.Policy.Bounds.Rule(key); bounded && rule != "" {
		return fmt.Sprintf("it has all that %s allows, which the operator can raise", rule)
	}
	return strings.Replace(failure.Hint, "limits."+key+" in agent.yaml", r.Unit.PlaceOfLimit(key), 1)
}

// limitOf returns the key of the limit that a failure is about, and whether the run has as
// much as the operator's bound allows.
func (r *Run) limitOf(failure api.RunError) (key string, bounded bool) {
	most := r.Unit.Policy.Bounds.Limits
	switch {
	case failure.Hint == moreTime:
		return "timeout", r.Limits.Timeout == most.Timeout
	case failure.Kind == "memory_limit":
		return "memory", r.Limits.MemoryBytes == most.MemoryBytes
	case failure.Kind == "pids_limit":
		return "pids", r.Limits.PIDs == most.PIDs
	case failure.Kind == "output_limit":
		return "output", r.Limits.OutputBytes == most.OutputBytes
	}
	return "", false
}
