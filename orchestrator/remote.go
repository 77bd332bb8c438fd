package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/agentapi"
	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/runtime"
)

func (r *Run) isRemote() bool { return r.req.Capsule.Kind == capsule.KindRemote }

// settleRemote ends a run that lives with its caller with what its agent answered.
func (o *Orchestrator) settleRemote(ctx context.Context, run *Run) error {
	c, err := o.callRemote(ctx, run)
	if err != nil {
		return err
	}
	return run.end(c)
}

// callRemote makes one attempt: no engine has a part in it. An attempt that an earlier
// process had under way is over, since its connection is: whether the agent did the task,
// nobody can say. One that was only starting had sent nothing yet.
func (j *job) callRemote(ctx context.Context) (conclusion, error) {
	if j.record.State == api.Running {
		return j.cutOff(ctx)
	}
	if err := j.enter(api.Starting, ""); err != nil {
		return conclusion{}, err
	}
	return j.service.exec.callRemote(ctx, j.Run)
}

// cutOff concludes an attempt of an earlier process, unless somebody wants the run's end.
func (j *job) cutOff(ctx context.Context) (conclusion, error) {
	wish := j.service.wishFor(context.WithoutCancel(ctx), j.id)
	if wish == nil {
		wish = context.Cause(ctx)
	}
	if wish != nil {
		return brokenOff(wish, j.req.limits(j.service.exec.limits))
	}
	return cutOff(), nil
}

// callRemote asks the run's agent once, and returns what came of that. The error is the end
// of this process: then it isn't known.
func (o *Orchestrator) callRemote(ctx context.Context, run *Run) (conclusion, error) {
	limits := run.req.limits(o.limits)
	agent, err := o.agents.client(run.record.Unit, run.req.Capsule.Remote, limits)
	if err != nil {
		return notAsked(err), nil
	}
	began := time.Now().UTC()
	run.record.StartedAt = &began
	if err := run.enter(api.Running, ""); err != nil { // from here on the agent may have the task
		return conclusion{}, err
	}
	ctx, span := tracer.Start(ctx, "call")
	defer span.End()
	limited, stop := context.WithTimeoutCause(ctx, limits.Timeout, errTimeout)
	defer stop()
	answer, err := run.ask(limited, agent)
	answered := time.Now()
	run.record.Timings.Run = milliseconds(answered.Sub(began))
	if err != nil && limited.Err() != nil {
		return brokenOff(context.Cause(limited), limits)
	}
	c := run.concludeRemote(answer, err, limits)
	run.record.Timings.Collect = milliseconds(time.Since(answered))
	return c, nil
}

// brokenOff concludes a call that we ended ourselves.
func brokenOff(cause error, limits runtime.Limits) (conclusion, error) {
	switch {
	case errors.Is(cause, runtime.ErrDetach):
		return conclusion{}, cause
	case errors.Is(cause, errTimeout):
		return timedOut(nil, limits.Timeout), nil
	}
	return ended(nil, cause), nil
}

func (r *Run) ask(ctx context.Context, agent *agentapi.Client) (agentapi.Response, error) {
	asked := r.remoteRequest(ctx)
	if !r.req.Capsule.Remote.Stream {
		return agent.Run(ctx, asked)
	}
	var pace handoff.Pace
	return agent.Stream(ctx, asked, func(e agentapi.Event) {
		p, told := progressOf(e)
		if told && pace.Take(time.Now()) {
			r.tell(Event{Progress: &p})
		}
	})
}

// remoteRequest is what the agent is asked for. The request's id is the run's, the same in
// all attempts, so that the other side can tell that they are one task. What the run is
// about goes before what the unit says: a task for the mode DEMO stays one.
func (r *Run) remoteRequest(ctx context.Context) agentapi.Request {
	remote, about := r.req.Capsule.Remote, r.record.Metadata
	return agentapi.Request{
		RequestID: r.id, TaskType: remote.TaskType, WorkflowID: about["workflow_id"], StageID: about["stage_id"],
		Mode: cmp.Or(about["mode"], remote.Mode), RiskTier: cmp.Or(about["risk_tier"], remote.RiskTier),
		DomainID: cmp.Or(about["domain_id"], remote.DomainID),
		Inputs:   agentapi.Object(r.ready.input.JSON()), Budgets: budgetsOf(ctx),
	}
}

// budgetsOf tells the agent how much time there is.
func budgetsOf(ctx context.Context) agentapi.Object {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	return agentapi.Object(fmt.Sprintf(`{"timeout_ms":%d}`, max(1, time.Until(deadline).Milliseconds())))
}

// progressOf reads what an agent says of how far it is. What it says wrongly counts as not
// said.
func progressOf(e agentapi.Event) (p handoff.Progress, told bool) {
	var members map[string]any
	if e.Type != agentapi.Progress || json.Unmarshal(e.Data, &members) != nil {
		return p, false
	}
	if percent, ok := members["percent"].(float64); ok {
		p.Percent = &percent
	}
	p.Step, _ = members["step"].(string)
	p.Message, _ = members["message"].(string)
	p = p.Fit()
	return p, p.Percent != nil || p.Step != "" || p.Message != ""
}
