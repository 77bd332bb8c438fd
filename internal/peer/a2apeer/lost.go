package a2apeer

import (
	"context"
	"errors"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

var errTimeout = errors.New("the time for the answer is over")

// ErrUnheard is in the chain of an error of Send or Stream whose message may have reached the agent without an answer
// that says so.
var ErrUnheard = errors.New("the agent may have the message")

// explain is the error of a call that the SDK says has failed: a *Violation, a *Refusal, an Unavailable or a Deadline
// fault, a Forbidden one of the transport, or the cause of ctx's end.
func explain(ctx context.Context, x *exchange, err error) error {
	switch {
	case x.violation != nil:
		return x.violation
	case ctx.Err() != nil:
		return ended(ctx)
	case fault.Is(x.lost, fault.Forbidden): // the transport of whoever asks may not reach the agent
		return fault.Public(x.lost)
	case x.lost != nil:
		return fault.Wrap(fault.Unavailable, agenthttp.Reason(x.lost), "%s", x.whereLost()).
			WithHint("is it running, and is its address right?")
	case x.status == 0:
		return broken(RuleAnswer, "a request to it can't be made")
	}
	return refusedWith(err, x.status)
}

func (x *exchange) whereLost() string {
	if x.status == 0 {
		return "the agent does not answer"
	}
	return "the answer of the agent broke off"
}

// ended says why a context ended: by a limit of ours, or by the caller.
func ended(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return fault.Wrap(fault.Deadline, errTimeout, "the agent took too long")
	case errors.Is(cause, httpwire.ErrSilent):
		return fault.Wrap(fault.Deadline, httpwire.ErrSilent, "the agent's stream was silent for %s", silenceTime)
	default:
		return cause
	}
}
