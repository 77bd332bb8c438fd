package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// execution implements run.Execution by calls of an agent.
type execution struct {
	*run.Run
	run.Bare
	agents *Agents
	secret agenthttp.Secret // that the newest request sends; "" is none
}

// Attempt implements run.Execution.
func (x *execution) Attempt(ctx context.Context) (run.Result, error) {
	if err := x.Enter(api.Starting, ""); err != nil {
		return run.Result{}, err
	}
	if x.speaksA2A() {
		return x.attemptTask(ctx)
	}
	return x.call(ctx)
}

// Resume implements run.Execution. If an earlier process had sent the request, the attempt is
// over: its connection is lost, and nobody knows whether the agent did the task, unless it has a
// task of the A2A protocol for it. An attempt that was only starting had sent nothing, and is
// made again.
func (x *execution) Resume(ctx context.Context) (run.Result, error) {
	if x.State() != api.Running {
		return x.Attempt(ctx)
	}
	if x.speaksA2A() {
		return x.resumeTask(ctx)
	}
	asked := x.CancelRequest()
	if asked == nil {
		asked = context.Cause(ctx)
	}
	if asked != nil {
		return interrupted(asked, x.Limits)
	}
	return unanswered(), nil
}

// call sends one request to the run's agent and returns its result. It returns an error only
// when this process ends: the result isn't known then.
func (x *execution) call(ctx context.Context) (run.Result, error) {
	client, err := x.client()
	if err != nil {
		return noSecret(err), nil
	}
	began := time.Now().UTC()
	x.Record.StartedAt = &began
	if err := x.Enter(api.Running, ""); err != nil { // from here on the agent may have the task
		return run.Result{}, err
	}
	ctx, span := tracer.Start(ctx, "call")
	defer span.End()
	limited, stop := context.WithTimeoutCause(ctx, x.Limits.Timeout, run.ErrTimeout)
	defer stop()
	answer, err := x.ask(limited, client)
	answered := time.Now()
	x.Record.Timings.Run = run.Milliseconds(answered.Sub(began))
	if err != nil && limited.Err() != nil {
		return interrupted(context.Cause(limited), x.Limits)
	}
	result := x.classify(limited, x.withoutSecret(answer), err)
	if result.State == "" { // the check of its outputs was broken off
		return interrupted(context.Cause(limited), x.Limits)
	}
	x.Record.Timings.Collect = run.Milliseconds(time.Since(answered))
	return result, nil
}

func (x *execution) client() (*agenthttp.Client, error) {
	agent, err := agentOf(x.Unit)
	if err != nil {
		return nil, err
	}
	client, secret, err := x.agents.client(x.Unit, agent, x.Limits)
	x.secret = secret
	return client, err
}

// interrupted is the result of a call that AOD ended.
func interrupted(cause error, limits runtime.Limits) (run.Result, error) {
	switch {
	case errors.Is(cause, runtime.ErrDetach):
		return run.Result{}, cause
	case errors.Is(cause, run.ErrTimeout):
		return run.TimedOut(nil, limits.Timeout), nil
	}
	return run.Stopped(nil, cause), nil
}

func (x *execution) ask(ctx context.Context, client *agenthttp.Client) (agenthttp.Response, error) {
	asked, streamed, err := x.request(ctx)
	if err != nil {
		return agenthttp.Response{}, err
	}
	if !streamed {
		return client.Run(ctx, asked)
	}
	var throttle handoff.Throttle
	return client.Stream(ctx, asked, func(e agenthttp.Event) {
		p, told := x.progressOf(e)
		if told && throttle.Allow(time.Now()) {
			x.Tell(run.Event{Progress: &p})
		}
	})
}

// request returns the request to the agent. Its id is that of the run in all attempts, so that
// the agent can recognise the task. The run's metadata wins over the unit's settings: a task
// in the mode DEMO stays one.
func (x *execution) request(ctx context.Context) (asked agenthttp.Request, streamed bool, err error) {
	agent, err := agentOf(x.Unit)
	if err != nil {
		return asked, false, err
	}
	about := x.Record.Metadata
	return agenthttp.Request{
		RequestID: x.ID, TaskType: agent.TaskType, WorkflowID: about["workflow_id"], StageID: about["stage_id"],
		Mode: cmp.Or(about["mode"], agent.Mode), RiskTier: cmp.Or(about["risk_tier"], agent.RiskTier),
		DomainID: cmp.Or(about["domain_id"], agent.DomainID),
		Inputs:   agenthttp.Object(x.Input.Payload.JSON()), Budgets: budgetsOf(ctx),
	}, agent.Stream, nil
}

// budgetsOf returns the budgets of a request: the time that is left.
func budgetsOf(ctx context.Context) agenthttp.Object {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	return agenthttp.Object(fmt.Sprintf(`{"timeout_ms":%d}`, max(1, time.Until(deadline).Milliseconds())))
}

// progressOf reads the progress from an event of the agent. It ignores invalid values.
func (x *execution) progressOf(e agenthttp.Event) (p handoff.Progress, told bool) {
	var members map[string]any
	if e.Type != agenthttp.Progress || json.Unmarshal(e.Data, &members) != nil {
		return p, false
	}
	if percent, ok := members["percent"].(float64); ok {
		p.Percent = &percent
	}
	p.Step, _ = members["step"].(string)
	p.Message, _ = members["message"].(string)
	p.Step, p.Message = x.hide(p.Step), x.hide(p.Message)
	p = p.Fit()
	return p, p.Percent != nil || p.Step != "" || p.Message != ""
}
