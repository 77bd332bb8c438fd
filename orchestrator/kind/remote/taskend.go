package remote

import (
	"errors"
	"fmt"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// kindUnanswered is the kind of error of a question that nobody answered, or that was answered with no.
const kindUnanswered = "unanswered"

// rejected is the type of error of a task that the agent rejected when it had looked at it.
const rejected = "Rejected"

// taskEnd makes the results of runs whose tasks have no output.
type taskEnd struct {
	x     *execution
	known bool // the agent has told of the task
}

// of decides what the state means in which the task ended.
func (e taskEnd) of(task a2apeer.Task) run.Result {
	failure := api.RunError{Category: api.CategoryAgent, Kind: string(api.RemoteError)}
	switch task.State {
	case a2apeer.Rejected:
		failure.Category, failure.Type, failure.Message = api.CategoryPermanent, rejected, "the agent rejected the task"
	case a2apeer.Canceled:
		failure.Message = "the agent cancelled the task"
	default:
		failure.Message = "the agent says that it failed"
	}
	failure.Message = e.quoting(failure.Message, task.Words)
	return remoteEnd(api.RemoteError, failure)
}

// quoting adds the agent's own words to a message, marked as such. Only the record shows them.
func (e taskEnd) quoting(message, words string) string {
	if words == "" {
		return message
	}
	return message + "; in its own words: " + fault.OneLine(run.Bounded(e.x.hide(words), run.MaxMessage))
}

// failed is the result of a run that came to no end of its task.
func (e taskEnd) failed(err error) run.Result {
	var broken *a2apeer.Violation
	var refused *a2apeer.Refusal
	var denied *run.Denied
	var silent *streamless
	switch {
	case errors.As(err, &broken):
		return contractViolation(fmt.Sprintf("%s (rule %s)", broken.Fault.Msg, broken.Rule), broken.Fault.Hint)
	case errors.As(err, &denied):
		return remoteEnd(api.RemoteError,
			api.RunError{
				Category: api.CategoryPermanent, Kind: kindUnanswered, Message: denied.Reason,
				Hint: denied.Hint,
			})
	case errors.As(err, &refused):
		return e.refused(refused)
	case errors.As(err, &silent):
		return unheard(nil)
	case errors.Is(err, a2apeer.ErrUnheard):
		return unheard(err)
	}
	return unreachable(err)
}

// refused is the result of a run whose agent answered with an error.
func (e taskEnd) refused(r *a2apeer.Refusal) run.Result {
	failure := api.RunError{
		Category: api.CategoryPermanent, Kind: api.KindRemoteRefused,
		Message: e.quoting(r.Fault.Msg, r.Words), Hint: r.Fault.Hint,
	}
	switch {
	case r.Busy():
		failure.Category, failure.Kind = api.CategoryTransient, api.KindRemoteBusy
	case r.Fault.Kind == fault.Unavailable:
		failure.Category, failure.Kind = api.CategoryTransient, fault.Unavailable.String()
		return remoteEnd(api.SystemError, failure)
	case r.Fault.Kind == fault.Internal, e.known && r.Fault.Kind == fault.NotFound:
		failure.Category, failure.Kind = api.CategoryAgent, string(api.RemoteError)
	}
	return remoteEnd(api.RemoteError, failure)
}

// unheard is the result of an attempt of which nobody knows whether the agent has the message, and the task with it. It
// isn't made again: the agent would do the task twice.
func unheard(err error) run.Result {
	message := "the server ended when the agent had been asked and had not told of its task"
	if err != nil {
		message = reasonOf(err)
	}
	return remoteEnd(api.SystemError, api.RunError{
		Category: api.CategoryPermanent, Kind: fault.Unavailable.String(), Message: message,
		Hint: "the agent may do the task: it was asked with the run's id as the message's id",
	})
}
