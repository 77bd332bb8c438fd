package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// end decides what the end of a dialog's turn means. The state after it is stored with that: the
// program hears no message twice, and another process that finds neither does the same again.
func (t *turn) end(ctx, limited context.Context, v *liveContainer, reply agent.Reply, err error) (run.Result, error) {
	if err != nil && ctx.Err() == nil && limited.Err() == nil && !isProgrammes(err) {
		return run.Result{}, errors.Join(err, t.container.keep(t.told...))
	}
	if err == nil {
		t.x.noteProgram(runtime.End{Reported: true})
	}
	result, failed := t.gather(ctx, v, reply, t.why(limited, v, err))
	if failed != nil {
		return run.Result{}, failed
	}
	t.container.talk.Agent, t.container.talk.Staged, t.container.talk.Logged = v.dialog.State(), 0, v.setTurn(t.run)
	record := &t.run.Record
	record.AgentUsage, record.CostUSD, record.AgentSession = reply.Usage, reply.CostUSD, t.container.talk.Agent.Session
	t.left, t.spent = v, err != nil && !v.dialog.Reusable() || v.hasEnded()
	if t.spent {
		t.lose(t.container.talk.Agent.Opened)
	}
	return result, t.run.KeepTurn(t.container.talk, t.told...)
}

// gather takes what a turn left: the files of one that the program completed, and what became of
// the project. Another process that comes as far as this does the same again.
func (t *turn) gather(ctx context.Context, v *liveContainer, reply agent.Reply, result run.Result) (run.Result, error) {
	left, err := t.leftBy(v)
	if err == nil && result.State == "" {
		result, err = t.result(ctx, reply, left)
	}
	if err != nil {
		return run.Result{}, err
	}
	return t.x.project.takeChanges(ctx, result, v.layout, t.x.limits())
}

// leftBy returns the layout with the files that the turn has left. The program has an empty
// directory for those of the next one.
func (t *turn) leftBy(v *liveContainer) (runtime.Layout, error) {
	of := v.layout
	if _, err := os.Lstat(t.run.OutputDir()); err == nil { // an earlier process came as far as that
		of.Output = t.run.OutputDir()
	}
	left, err := of.TakeOutput()
	if err != nil {
		return left, err
	}
	return left, v.layout.RenewOutput()
}

// isProgrammes reports whether the program is to blame for the end of a turn.
func isProgrammes(err error) bool {
	var wrong *agent.ProgramError
	return errors.Is(err, agent.ErrProgramEnded) || errors.As(err, &wrong)
}

// lose notes that the session can't go on without the program that has failed it.
func (t *turn) lose(greeted bool) {
	switch {
	case !resumes(t.config):
		t.run.Session.Over = "its program has ended, and can't take up a session again"
	case !greeted && t.run.Session.Turn > 1:
		t.run.Session.Over = "its program could not take up the session again"
	}
}

// why returns the result of a turn that the program didn't complete.
func (t *turn) why(limited context.Context, v *liveContainer, err error) run.Result {
	if err == nil {
		return run.Result{}
	}
	if errors.Is(err, agent.ErrProgramEnded) && limited.Err() == nil {
		<-v.ended
		return t.programEnded(v)
	}
	var wrong *agent.ProgramError
	switch {
	case limited.Err() != nil && errors.Is(context.Cause(limited), run.ErrTimeout):
		return run.TimedOut(nil, t.x.limits().Timeout)
	case limited.Err() != nil:
		return run.Stopped(nil, context.Cause(limited))
	case errors.As(err, &wrong):
		return turnFailed("the agent failed the turn: "+run.Bounded(wrong.Msg, run.MaxMessage), "its log says more")
	}
	return run.Fault(limited, err)
}

// programEnded is the result of a turn whose program ended in it.
func (t *turn) programEnded(v *liveContainer) run.Result {
	if v.err != nil {
		return run.Fault(context.Background(), v.err)
	}
	t.x.noteProgram(v.end)
	if result, ok := stopped(v.end, t.x.limits()); ok {
		return result
	}
	if result, ok := t.x.verdict.died(v.end, t.x.limits()); ok {
		return result
	}
	result := turnFailed(fmt.Sprintf("the program ended with exit code %d before its turn did", v.end.ExitCode),
		"its log, which is its stderr, says more")
	result.ExitCode = &v.end.ExitCode
	return result
}

func turnFailed(message, hint string) run.Result {
	return run.Result{State: api.Failed, Outcome: api.CapsuleError, Failure: &api.RunError{
		Category: api.CategoryAgent, Kind: string(api.CapsuleError), Message: message, Hint: hint,
	}}
}

// result is that of a turn which the program completed, with the files that it left.
func (t *turn) result(ctx context.Context, reply agent.Reply, left runtime.Layout) (run.Result, error) {
	if !wellEnded(reply.Stop) {
		t.run.Warn("the agent ended its turn early: %s", run.Bounded(reply.Stop, run.MaxType))
	}
	raw, err := json.Marshal(map[string]string{"text": reply.Text})
	if err != nil {
		return run.Result{}, err
	}
	output, err := contract.Decode(raw, t.x.limits().ResultBytes)
	if err != nil {
		return contractViolation(run.Undecodable(err)), nil
	}
	return t.x.collector.takeOutput(ctx, output, left, t.x.limits())
}

func wellEnded(stop string) bool { return stop == "" || stop == "end_turn" || stop == "success" }
