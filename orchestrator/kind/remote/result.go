package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

const (
	maxRemoteWarnings = 20
	maxRemoteWarning  = 1 << 10 // bytes
)

// classify decides what an answer or its error means.
func (x *execution) classify(ctx context.Context, answer agenthttp.Response, err error) run.Result {
	var broken *agenthttp.Violation
	var refused *agenthttp.Refusal
	switch {
	case err == nil && answer.OK:
		x.passOn(answer.Warnings)
		if answer.HasOddStatus() {
			x.Warn("the agent's status is %s; it counts as a success because ok or success is true beside it",
				fault.Quote(answer.Status))
		}
		return x.takeOutputs(ctx, answer.Outputs)
	case err == nil:
		return remoteFailed(answer)
	case errors.As(err, &broken):
		return contractViolation(fmt.Sprintf("%s (rule %s)", broken.Fault.Msg, broken.Rule), broken.Fault.Hint)
	case errors.As(err, &refused):
		return refusedWith(answer, refused)
	case fault.Is(err, fault.TooLarge):
		return contractViolation(reasonOf(err), "the setting payload_limit bounds what a unit may give")
	}
	return unreachable(err)
}

// withoutSecret returns an answer whose words don't have the secret that the agent was sent: more
// people see the record than know the secret.
func (x *execution) withoutSecret(answer agenthttp.Response) agenthttp.Response {
	for _, text := range []*string{&answer.Status, &answer.Code, &answer.Reason} {
		*text = x.hide(*text)
	}
	for i, warning := range answer.Warnings {
		answer.Warnings[i] = x.hide(warning)
	}
	return answer
}

// hide replaces the secret in a text of the agent's.
func (x *execution) hide(text string) string {
	if x.secret == "" {
		return text
	}
	return strings.ReplaceAll(text, string(x.secret), x.secret.String())
}

// remoteEnd is a result without an exit code.
func remoteEnd(outcome api.Outcome, failure api.RunError) run.Result {
	return run.Result{State: api.Failed, Outcome: outcome, Failure: &failure}
}

// takeOutputs checks the agent's outputs against the unit's contract. Where ctx ends before that
// is done, there is no result.
func (x *execution) takeOutputs(ctx context.Context, outputs agenthttp.Object) run.Result {
	output, err := contract.Decode(outputs, x.Limits.ResultBytes)
	if err != nil {
		return outputsBreak(run.Undecodable(err))
	}
	findings, err := x.Unit.Contract.Output.ValidateContext(ctx, output)
	if err != nil {
		return run.Result{}
	}
	if len(findings) > 0 {
		return outputsBreak(findings...)
	}
	return run.Result{State: api.Completed, Outcome: api.Success, Output: output.JSON()}
}

func outputsBreak(findings ...fault.Finding) run.Result {
	message := "the agent's outputs break the contract"
	if at := findings[0].Pointer; at != "" {
		message += " at " + run.Bounded(at, run.MaxType)
	}
	c := contractViolation(message, "see `output` in the unit's schema.json")
	c.Failure.Findings = findings
	return c
}

// contractViolation is the result of a run whose agent broke the agent HTTP contract or the
// unit's contract.
func contractViolation(message, hint string) run.Result {
	return remoteEnd(api.ContractViolation,
		api.RunError{Category: api.CategoryAgent, Kind: string(api.ContractViolation), Message: message, Hint: hint})
}

// remoteFailed is the result of a run whose agent reports a failure.
func remoteFailed(answer agenthttp.Response) run.Result {
	return remoteEnd(api.RemoteError, api.RunError{
		Category: api.CategoryAgent, Kind: string(api.RemoteError), Message: withItsWords(whyFailure(answer), answer),
	})
}

// whyFailure says why an answer counts as a failure.
func whyFailure(answer agenthttp.Response) string {
	if answer.HasOddStatus() {
		return fmt.Sprintf("the agent's status is %s, and only ok and success are a success by themselves: it counts "+
			"as a failure", fault.Quote(answer.Status))
	}
	return "the agent says that it failed"
}

// withItsWords adds the agent's own code and message, marked as such. Only the record shows
// them.
func withItsWords(message string, answer agenthttp.Response) string {
	words := cmp.Or(answer.Reason, strings.Join(answer.Warnings, "; "))
	if answer.Code != "" {
		words = strings.TrimSuffix(run.Bounded(answer.Code, run.MaxType)+": "+words, ": ")
	}
	if words == "" {
		return message
	}
	return message + "; in its own words: " + fault.OneLine(run.Bounded(words, run.MaxMessage))
}

// refusedWith is the result of a run whose agent answered with a status other than success.
func refusedWith(answer agenthttp.Response, refused *agenthttp.Refusal) run.Result {
	failure := api.RunError{
		Category: api.CategoryPermanent, Kind: api.KindRemoteRefused,
		Message: withItsWords(refused.Fault.Msg, answer), Hint: refused.Fault.Hint,
	}
	switch status := refused.Status; {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		failure.Category, failure.Kind = api.CategoryTransient, api.KindRemoteBusy
	case status < http.StatusInternalServerError || status == http.StatusNotImplemented:
	case answer.RequestID != "": // the agent itself, in the contract's shape
		return remoteFailed(answer)
	case status == http.StatusBadGateway || status == http.StatusGatewayTimeout:
		failure.Category, failure.Kind = api.CategoryTransient, fault.Unavailable.String()
		return remoteEnd(api.SystemError, failure)
	default:
		failure.Category, failure.Kind = api.CategoryAgent, string(api.RemoteError)
	}
	return remoteEnd(api.RemoteError, failure)
}

// unreachable is the result of a run that got no complete answer.
func unreachable(err error) run.Result {
	public := fault.Public(err)
	failure := api.RunError{
		Category: run.CategoryOf(public.Kind), Kind: public.Kind.String(), Message: reasonOf(err),
		Hint: public.Hint, Findings: public.Findings,
	}
	switch {
	case errors.Is(err, agenthttp.ErrCertificate), errors.Is(err, agenthttp.ErrHandshake):
		failure.Category, failure.Kind = api.CategoryPermanent, api.KindRemoteUntrusted
		failure.Hint = "is the address right? a certificate of one's own is trusted with remote.ca_file in agent.yaml"
	case public.Kind == fault.Input: // it can't be asked so
		return remoteEnd(api.InvalidInput, failure)
	}
	return remoteEnd(api.SystemError, failure)
}

// reasonOf returns the message of a fault of package agenthttp with its cause. Both are in
// AOD's own words.
func reasonOf(err error) string {
	public := fault.Public(err)
	if public.Err == nil {
		return public.Msg
	}
	return public.Msg + ": " + public.Err.Error()
}

// noSecret is the result of a run whose secret can't be read.
func noSecret(err error) run.Result {
	return remoteEnd(api.SystemError, *run.NoSecret(err))
}

// unanswered is the result of an attempt that ended with an earlier process.
func unanswered() run.Result {
	return remoteEnd(api.SystemError, api.RunError{
		Category: api.CategoryTransient, Kind: fault.Unavailable.String(),
		Message: "the server ended while the agent was at work",
		Hint:    "the agent may have done the task: it was asked with the run's id as its request_id",
	})
}

// passOn adds the agent's warnings to those of the run, up to a bound.
func (x *execution) passOn(warnings []string) {
	for i, text := range warnings {
		if i == maxRemoteWarnings {
			x.Warn("the agent has %d more warnings", len(warnings)-i)
			return
		}
		x.Warn("the agent: %s", fault.OneLine(run.Bounded(text, maxRemoteWarning)))
	}
}
