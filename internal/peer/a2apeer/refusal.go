package a2apeer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/peer"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Refusal is an error that the agent answered with. It is a fault of the kind that the error means.
type Refusal struct {
	Reason string // as the protocol names it, such as TASK_NOT_FOUND; "": only a status was said
	Status int    // of HTTP
	Words  string // what the agent says of it: the text of a stranger, which may repeat the input
	Fault  *fault.Error
}

// Error implements error. It has no word of the agent's.
func (r *Refusal) Error() string { return r.Fault.Error() }

// Unwrap returns the fault.
func (r *Refusal) Unwrap() error { return r.Fault }

// Busy reports whether the same request may be taken later.
func (r *Refusal) Busy() bool { return r.Fault.Kind == fault.Busy }

// IsReason reports whether an error is a refusal for a reason of the protocol.
func IsReason(err error, reason string) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Reason == reason
}

// IsUnspoken reports whether an error says that the agent doesn't speak the protocol so: it did nothing then, and may
// be asked by another of its interfaces.
func IsUnspoken(err error) bool {
	var r *Refusal
	if !errors.As(err, &r) {
		return false
	}
	switch r.Reason {
	case "METHOD_NOT_FOUND", "VERSION_NOT_SUPPORTED":
		return true
	case "":
		return r.Status == http.StatusNotFound || r.Status == http.StatusMethodNotAllowed ||
			r.Status == http.StatusNotImplemented
	}
	return false
}

// kinds are the kinds of fault of the protocol's errors. Those that aren't here are failures of the agent's.
var kinds = map[string]fault.Kind{
	"PARSE_ERROR": fault.Unsupported, "INVALID_REQUEST": fault.Unsupported, "METHOD_NOT_FOUND": fault.Unsupported,
	"INVALID_PARAMS": fault.Input, "TASK_NOT_FOUND": fault.NotFound, "TASK_NOT_CANCELABLE": fault.Conflict,
	"PUSH_NOTIFICATION_NOT_SUPPORTED": fault.Unsupported, "UNSUPPORTED_OPERATION": fault.Unsupported,
	"CONTENT_TYPE_NOT_SUPPORTED": fault.Input, "EXTENDED_AGENT_CARD_NOT_CONFIGURED": fault.Unsupported,
	"EXTENSION_SUPPORT_REQUIRED": fault.Unsupported, "VERSION_NOT_SUPPORTED": fault.Unsupported,
	"UNAUTHENTICATED": fault.Unauthorized, "UNAUTHORIZED": fault.Forbidden,
}

// retryInfo is the type of the detail with which an error asks for another try.
const retryInfo = "google.rpc.RetryInfo"

// refusedWith is the error of an answer that the SDK could not take: an error of the protocol, or nonsense.
func refusedWith(err error, status int) error {
	var told *a2a.Error
	if !errors.As(err, &told) {
		if status/100 != 2 {
			return refusedBy(status)
		}
		return broken(RuleAnswer, "an answer is none of the protocol")
	}
	// what the SDK makes of a body that names no reason
	if status/100 == 4 && errors.Is(told.Err, a2a.ErrInternalError) {
		return refusedBy(status)
	}
	r := &Refusal{Reason: a2a.ErrorReason(told.Err), Status: status, Words: shown(told.Message)}
	kind, known := kinds[r.Reason]
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusTooManyRequests,
		status == http.StatusServiceUnavailable:
		kind = statuses.Of(status)
	case asksForRetry(told):
		kind = fault.Busy
	case !known:
		kind = fault.Internal
	}
	r.Fault = fault.New(kind, "the agent refused with %s", r.Reason).WithHint("%s", hintOf(kind))
	return r
}

func asksForRetry(told *a2a.Error) bool {
	for _, detail := range told.TypedDetails {
		if detail != nil && strings.HasSuffix(detail.TypeURL, retryInfo) {
			return true
		}
	}
	return false
}

// refusedBy is the refusal of an answer that says no more than its status.
func refusedBy(status int) *Refusal {
	kind := statuses.Of(status)
	return &Refusal{Status: status, Fault: fault.New(kind, "the agent answered with the status %d", status).
		WithHint("%s", hintOf(kind))}
}

// statuses are the kinds of the statuses of HTTP.
var statuses = peer.Kinds{
	Own: map[int]fault.Kind{
		http.StatusServiceUnavailable: fault.Busy, http.StatusBadGateway: fault.Unavailable,
		http.StatusGatewayTimeout: fault.Unavailable,
	},
	Failed: fault.Internal,
}

func hintOf(kind fault.Kind) string {
	switch kind {
	case fault.Unauthorized, fault.Forbidden:
		return "is the agent's token the right one?"
	case fault.Input:
		return "is the input one that the agent takes? its card says what it does"
	case fault.Busy:
		return "ask again later"
	case fault.NotFound:
		return fmt.Sprintf("does the agent's card lie at %s below its address, and does it still have the task?",
			cardPath)
	}
	return "the agent's own log says more"
}

// The rules that an agent can break.
const (
	RuleCard       = "card"            // its card is of the protocol, and no larger than MaxCard
	RuleInterfaces = "card-interfaces" // its card has an interface that can be used
	RuleOrigin     = "card-origin"     // the interfaces of its card have the origin of its address
	RuleAnswer     = "answer"          // its answers are of the protocol
	RuleSize       = "size"            // they keep the bounds of this package
	RuleTask       = "task-id"         // they are about the task that was asked for
	RuleState      = "task-state"      // a task is in a state that the protocol has
)

// Violation is what an agent sent against a rule. It is an Unsupported fault: another try would bring the same.
type Violation = peer.Violation

func broken(rule, format string, args ...any) *Violation {
	f := fault.New(fault.Unsupported, "the agent breaks the A2A protocol: "+format, args...)
	return &Violation{Rule: rule, Fault: f.WithHint("aod check-agent --a2a tells more of it")}
}

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
	case x.lost != nil:
		return peer.Lost(x.lost, "%s", x.whereLost())
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
