package orchestrator

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/agent-on-demand/aod/agentapi"
	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	maxRemoteWarnings = 20
	maxRemoteWarning  = 1 << 10 // bytes
)

// concludeRemote decides what an answer means, or that there was none.
func (r *Run) concludeRemote(answer agentapi.Response, err error, limits runtime.Limits) conclusion {
	var broken *agentapi.Violation
	var refused *agentapi.Refusal
	switch {
	case err == nil && answer.OK:
		r.passOn(answer.Warnings)
		return r.takeOutputs(answer.Outputs, limits)
	case err == nil:
		return saidFailed(answer)
	case errors.As(err, &broken):
		return misspoke(fmt.Sprintf("%s (rule %s)", broken.Fault.Msg, broken.Rule), broken.Fault.Hint)
	case errors.As(err, &refused):
		return refusedWith(answer, refused)
	case fault.Is(err, fault.TooLarge):
		return misspoke(reasonOf(err), "the setting payload_limit bounds what a unit may give")
	}
	return unreached(err)
}

// remoteEnd concludes a run of an agent elsewhere, which has no exit code.
func remoteEnd(outcome api.Outcome, failure api.RunError) conclusion {
	return conclusion{state: api.Failed, outcome: outcome, failure: &failure}
}

// takeOutputs holds what the agent gave against the unit's contract.
func (r *Run) takeOutputs(outputs agentapi.Object, limits runtime.Limits) conclusion {
	output, err := contract.Decode(outputs, limits.ResultBytes)
	if err != nil {
		finding := undecodable(err)
		finding.File = ""
		return outputsBreak(finding)
	}
	if findings := r.req.Capsule.Contract.Output.Validate(output); len(findings) > 0 {
		return outputsBreak(findings...)
	}
	return conclusion{state: api.Completed, outcome: api.Success, output: output.JSON()}
}

func outputsBreak(findings ...fault.Finding) conclusion {
	message := "the agent's outputs break the contract"
	if at := findings[0].Pointer; at != "" {
		message += " at " + bounded(at, maxType)
	}
	c := misspoke(message, "see `output` in the unit's schema.json")
	c.failure.Findings = findings
	return c
}

// misspoke concludes a run whose agent broke a contract: that of all agents, or the unit's.
func misspoke(message, hint string) conclusion {
	return remoteEnd(api.ContractViolation, api.RunError{Category: api.CategoryAgent, Kind: string(api.ContractViolation), Message: message, Hint: hint})
}

// saidFailed concludes a run whose agent says that it failed.
func saidFailed(answer agentapi.Response) conclusion {
	return remoteEnd(api.RemoteError, api.RunError{
		Category: api.CategoryAgent, Kind: string(api.RemoteError), Message: inItsWords("the agent says that it failed", answer),
	})
}

// inItsWords adds what the agent itself said, which is for the record alone.
func inItsWords(message string, answer agentapi.Response) string {
	words := cmp.Or(answer.Reason, strings.Join(answer.Warnings, "; "))
	if words == "" {
		return message
	}
	return message + ": " + bounded(words, maxMessage)
}

// refusedWith concludes a run whose agent answered with a status that is no success.
func refusedWith(answer agentapi.Response, refused *agentapi.Refusal) conclusion {
	failure := api.RunError{
		Category: api.CategoryPermanent, Kind: api.KindRemoteRefused,
		Message: inItsWords(refused.Fault.Msg, answer), Hint: refused.Fault.Hint,
	}
	switch status := refused.Status; {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		failure.Category, failure.Kind = api.CategoryTransient, api.KindRemoteBusy
	case status < http.StatusInternalServerError || status == http.StatusNotImplemented:
	case answer.RequestID != "": // the agent itself, in the contract's shape
		return saidFailed(answer)
	case status == http.StatusBadGateway || status == http.StatusGatewayTimeout:
		failure.Category, failure.Kind = api.CategoryTransient, fault.Unavailable.String()
		return remoteEnd(api.SystemError, failure)
	default:
		failure.Category, failure.Kind = api.CategoryAgent, string(api.RemoteError)
	}
	return remoteEnd(api.RemoteError, failure)
}

// unreached concludes a run that has no answer, or not the whole of one.
func unreached(err error) conclusion {
	public := fault.Public(err)
	failure := api.RunError{Category: categoryOf(public.Kind), Kind: public.Kind.String(), Message: reasonOf(err), Hint: public.Hint, Findings: public.Findings}
	switch {
	case errors.Is(err, agentapi.ErrCertificate), errors.Is(err, agentapi.ErrHandshake):
		failure.Category, failure.Kind = api.CategoryPermanent, api.KindRemoteUntrusted
		failure.Hint = "is the address right? a certificate of one's own is trusted with remote.ca_file in agent.yaml"
	case public.Kind == fault.Input: // it can't be asked so
		return remoteEnd(api.InvalidInput, failure)
	}
	return remoteEnd(api.SystemError, failure)
}

// reasonOf is a fault of package agentapi with its cause, which is in words of ours.
func reasonOf(err error) string {
	public := fault.Public(err)
	if public.Err == nil {
		return public.Msg
	}
	return public.Msg + ": " + public.Err.Error()
}

// notAsked concludes a run for whose agent there is no secret.
func notAsked(err error) conclusion {
	public := fault.Public(err)
	return remoteEnd(api.SystemError, api.RunError{Category: api.CategoryPermanent, Kind: api.KindSecretUnavailable, Message: public.Msg, Hint: public.Hint})
}

// cutOff concludes an attempt that ended with an earlier process.
func cutOff() conclusion {
	return remoteEnd(api.SystemError, api.RunError{
		Category: api.CategoryTransient, Kind: fault.Unavailable.String(),
		Message: "the server ended while the agent was at work",
		Hint:    "the agent may have done the task: it was asked with the run's id as its request_id",
	})
}

// passOn makes warnings of the agent's those of the run, as far as anybody would read them.
func (r *Run) passOn(warnings []string) {
	for i, text := range warnings {
		if i == maxRemoteWarnings {
			r.warn("the agent has %d more warnings", len(warnings)-i)
			return
		}
		r.warn("the agent: %s", fault.OneLine(bounded(text, maxRemoteWarning)))
	}
}
