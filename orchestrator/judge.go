package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// Exit codes that say something by themselves.
const (
	exitKilled   = 137 // 128 + SIGKILL
	exitContract = 1
	exitFileSize = 153 // 128 + SIGXFSZ: one file went over the disk limit
)

// conclusion is how an attempt ended, and what it gave.
type conclusion struct {
	state   api.State
	outcome api.Outcome
	exit    *int // nil: its program never ran to an end
	failure *api.RunError
	output  json.RawMessage
	files   []api.File
}

func failed(outcome api.Outcome, exit int, failure *api.RunError) conclusion {
	return conclusion{state: api.Failed, outcome: outcome, exit: &exit, failure: failure}
}

// conclude decides what the end of the sandbox means and takes the result of a
// program that ended well. Its error is a fault of ours.
func (r *Run) conclude(end runtime.End, layout runtime.Layout, limits runtime.Limits) (conclusion, error) {
	r.measure(end)
	var over *runtime.LimitError
	if end.ExitCode == exitFileSize && errors.As(end.Cause, &over) {
		end.Cause = nil // the kernel came first, and knows better what went over
	}
	if c, ok := stopped(end, limits); ok {
		return c, nil
	}
	if end.Outside && r.overdue(end, limits) { // an earlier process stopped it, and died meanwhile
		return timedOut(&end.ExitCode, limits.Timeout), nil
	}
	if r.isAU() && end.ExitCode == exitFileSize {
		return overprinted(end, limits), nil
	}
	if c, ok := r.died(end, limits); ok {
		return c, nil
	}
	began := time.Now()
	defer func() { r.record.Timings.Collect = milliseconds(time.Since(began)) }()
	if r.isAU() {
		return r.concludeAU(end, layout, limits)
	}
	if end.ExitCode != 0 {
		return takeError(end, layout, limits)
	}
	r.noteLimits(end)
	return r.takeResult(layout, limits)
}

func (r *Run) measure(end runtime.End) {
	if end.Reported && r.lease.Number == 0 { // else it tells of other runs as well
		r.record.Usage = &api.Usage{CPUSeconds: end.Report.CPUSeconds, PeakMemoryBytes: end.Report.PeakMemoryBytes}
	}
}

// overdue reports whether the program ended when its time was up already.
func (r *Run) overdue(end runtime.End, limits runtime.Limits) bool {
	return r.record.StartedAt != nil && !end.FinishedAt.Before(r.record.StartedAt.Add(limits.Timeout))
}

// stopped concludes a run that we ended ourselves.
func stopped(end runtime.End, limits runtime.Limits) (conclusion, bool) {
	var over *runtime.LimitError
	switch {
	case end.Cause == nil:
		return conclusion{}, false
	case errors.As(end.Cause, &over):
		return exceeded(end.ExitCode, over), true
	case errors.Is(end.Cause, errTimeout):
		return timedOut(&end.ExitCode, limits.Timeout), true
	}
	return ended(&end.ExitCode, end.Cause), true
}

// died concludes a run whose program was killed or never lived.
func (r *Run) died(end runtime.End, limits runtime.Limits) (conclusion, bool) {
	switch {
	case end.ExitCode == 0:
		return conclusion{}, false
	case end.OOMKilled || end.Report.OOMKills > 0:
		return failed(api.OutOfMemory, exitKilled, &api.RunError{
			Category: api.CategoryAgent, Kind: api.KindMemoryLimit,
			Message: fmt.Sprintf("the %s was killed at its memory limit of %s", r.noun(), megabytes(limits.MemoryBytes)),
			Hint:    "raise limits.memory in agent.yaml if it needs that much",
		}), true
	case end.Outside:
		return failed(api.SystemError, end.ExitCode, &api.RunError{
			Category: api.CategoryTransient, Kind: api.KindStoppedOutside,
			Message: fmt.Sprintf("the container was stopped from outside (exit code %d)", end.ExitCode),
			Hint:    "somebody, or the engine when it was shut down, stopped it; run it again",
		}), true
	case end.Report.StartError != "":
		return failed(api.StartFailed, end.ExitCode, &api.RunError{
			Category: api.CategoryPermanent, Kind: string(api.StartFailed),
			Message: "the image's program could not be started: " + end.Report.StartError,
			Hint:    "check CMD and ENTRYPOINT of the Dockerfile",
		}), true
	case end.Report.PIDsLimitHits > 0:
		return exceeded(end.ExitCode, &runtime.LimitError{
			Limit:   "pids",
			Message: fmt.Sprintf("the %s failed (exit code %d) at its limit of %d processes and threads", r.noun(), end.ExitCode, limits.PIDs),
			Hint:    "raise limits.pids in agent.yaml if it needs that many",
		}), true
	case end.ExitCode == exitFileSize:
		return exceeded(end.ExitCode, &runtime.LimitError{
			Limit:   "output",
			Message: fmt.Sprintf("the %s was stopped when it wrote a file of more than %s", r.noun(), megabytes(limits.DiskBytes)),
			Hint:    "raise limits.output in agent.yaml if that is meant: twice as much may be written while running",
		}), true
	}
	return conclusion{}, false
}

// noun is what a person calls what was run.
func (r *Run) noun() string {
	if r.isAU() {
		return "unit"
	}
	return "capsule"
}

func exceeded(exit int, over *runtime.LimitError) conclusion {
	if exit == 0 {
		exit = exitContract
	}
	return failed(api.LimitExceeded, exit, &api.RunError{
		Category: api.CategoryAgent, Kind: over.Limit + "_limit", Message: over.Message, Hint: over.Hint,
	})
}

func timedOut(exit *int, limit time.Duration) conclusion {
	return conclusion{state: api.Timeout, outcome: api.TimedOut, exit: exit, failure: &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.TimedOut),
		Message: fmt.Sprintf("the run was stopped after %v, its time limit", limit),
		Hint:    "give it more with --timeout, or limits.timeout in agent.yaml",
	}}
}

// ended concludes a run whose context ended.
func ended(exit *int, cause error) conclusion {
	if errors.Is(cause, errDeadline) {
		return conclusion{state: api.Timeout, outcome: api.TimedOut, exit: exit, failure: &api.RunError{
			Category: api.CategoryAgent, Kind: string(api.TimedOut),
			Message: "the run was stopped when the time of the run that called it was up",
			Hint:    "give the caller more with --timeout, or limits.timeout in its agent.yaml",
		}}
	}
	return cancelled(exit, cause)
}

func cancelled(exit *int, cause error) conclusion {
	message := "the run was cancelled"
	if cause != nil && !errors.Is(cause, context.Canceled) {
		message += ": " + cause.Error()
	}
	return conclusion{state: api.Cancelled, outcome: api.WasCancelled, exit: exit, failure: &api.RunError{
		Category: api.CategoryPermanent, Kind: string(api.WasCancelled), Message: message,
	}}
}

// failure concludes an attempt that ended with an error which is no doing of the
// unit's: a fault, or the end of ctx before there was a program to stop.
func failure(ctx context.Context, err error) conclusion {
	if ctx.Err() != nil {
		return ended(nil, context.Cause(ctx))
	}
	public := fault.Public(err)
	outcome := api.SystemError
	if public.Kind == fault.Input { // an Agentic Unit's: its model card is known by then
		outcome = api.InvalidInput
	}
	return conclusion{state: api.Failed, outcome: outcome, failure: &api.RunError{
		Category: categoryOf(public.Kind), Kind: public.Kind.String(),
		Message: public.Msg, Hint: public.Hint, Findings: public.Findings,
	}}
}

// noteLimits warns of limits that were met by a program that ended well all the same.
func (r *Run) noteLimits(end runtime.End) {
	if end.Report.OOMKills > 0 {
		r.warn("a process of the %s was killed at the memory limit (limits.memory)", r.noun())
	}
	if end.Report.PIDsLimitHits > 0 {
		r.warn("the %s met its limit of processes and threads (limits.pids)", r.noun())
	}
}

// categoryOf says whether trying again can help after a fault.
func categoryOf(kind fault.Kind) api.Category {
	switch kind {
	case fault.Unavailable, fault.Deadline, fault.Busy:
		return api.CategoryTransient
	case fault.Internal:
		return api.CategorySystem
	}
	return api.CategoryPermanent
}

func megabytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
