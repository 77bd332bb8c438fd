package check

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/client/agenthttp"
)

// DefaultTimeout bounds each call of a check.
const DefaultTimeout = time.Minute

// maxAnswer bounds an answer or an event, in bytes.
const maxAnswer = 4 << 20

// Options configure a check of an agent.
type Options struct {
	// Call holds the options of the calls. Its URL is the target's, its Timeout is for each
	// of about ten calls (0 is DefaultTimeout).
	Call agenthttp.Options
	// Inputs are sent with the task; none are an empty object.
	Inputs agenthttp.Object

	now  func() time.Time // a clock, in tests
	seen func()           // called after each event of the stream, in tests
}

// Agent calls an agent, sync and streaming, and judges every rule of the specification. The
// task runs three times, in the mode DEMO, and more often if the agent doesn't refuse what
// it should. The error is an Input fault for an invalid address or token, or the end of
// ctx. An unreachable agent is a failed rule.
func Agent(ctx context.Context, target Target, opts Options) (Report, error) {
	call := opts.Call
	call.URL = target.URL
	if call.Timeout <= 0 {
		call.Timeout = DefaultTimeout
	}
	call.Limits = agenthttp.Limits{Answer: maxAnswer, Line: maxAnswer, Event: maxAnswer, Stream: 4 * maxAnswer}
	client, err := agenthttp.New(call)
	if err != nil {
		return Report{}, err
	}
	e := &examiner{
		client: client, task: target.TaskType, inputs: opts.Inputs, now: opts.now, seen: opts.seen,
		canary: "canary-" + rand.Text(),
	}
	if e.now == nil {
		e.now = time.Now
	}
	if e.seen == nil {
		e.seen = func() {}
	}
	found := e.gather(ctx)
	if err := ctx.Err(); err != nil {
		return Report{}, context.Cause(ctx)
	}
	return found.report(target), nil
}

// evidence is everything an agent did during a check.
type evidence struct {
	canary      string // is in the inputs of requests that are to be refused
	unreachable string // why the agent doesn't answer

	health       answer
	sync         answer
	minimal      answer
	unsupported  answer
	withoutID    answer
	withoutTask  answer
	stream       streamed
	streamNoTask streamed // of an unknown task type
	streamNoID   answer
}

func (e *evidence) report(target Target) Report {
	r := Report{Target: target.URL, TaskType: target.TaskType, Checks: []Result{}}
	for _, c := range checks() {
		result := Result{ID: c.id, Title: c.title, Section: c.section}
		result.Verdict, result.Why = c.judge(e)
		r.Checks = append(r.Checks, result)
	}
	return r
}

// examiner makes the calls of a check.
type examiner struct {
	client *agenthttp.Client
	task   string
	inputs agenthttp.Object
	canary string
	now    func() time.Time
	seen   func()
}

// gather makes all calls. If the agent doesn't answer the first two, it makes no more.
func (e *examiner) gather(ctx context.Context) *evidence {
	found := &evidence{canary: e.canary}
	found.health = e.ask(ctx, http.MethodGet, "/health", nil)
	found.unsupported = e.post(ctx, e.unknown())
	if found.health.problem != "" && found.unsupported.problem != "" {
		found.unreachable, found.unsupported = found.unsupported.problem, answer{}
		return found.skip("the agent does not answer")
	}
	found.streamNoTask = e.open(ctx, e.unknown())
	if e.task == "" {
		return found.skip("no task type was named: write URL=TASK")
	}
	found.sync = e.post(ctx, e.full())
	found.minimal = e.post(ctx, agenthttp.Request{RequestID: newID(), TaskType: e.task, Inputs: e.inputs})
	found.withoutID = e.post(ctx, agenthttp.Request{TaskType: e.task, Inputs: e.bait()})
	found.withoutTask = e.post(ctx, agenthttp.Request{RequestID: newID(), Inputs: e.bait()})
	found.stream = e.open(ctx, e.full())
	found.streamNoID = e.open(ctx, agenthttp.Request{TaskType: e.task, Inputs: e.bait()}).answer
	return found
}

// skip marks the calls that were not made.
func (e *evidence) skip(why string) *evidence {
	for _, a := range []*answer{
		&e.sync, &e.minimal, &e.unsupported, &e.withoutID, &e.withoutTask, &e.stream.answer, &e.streamNoTask.answer,
		&e.streamNoID,
	} {
		if a.status == 0 && a.problem == "" {
			a.skipped = why
		}
	}
	return e
}

func newID() string { return "aod-check-" + rand.Text() }

// full is a request with every member of the contract.
func (e *examiner) full() agenthttp.Request {
	inputs := e.inputs
	if inputs.IsZero() {
		inputs = agenthttp.Object("{}")
	}
	return agenthttp.Request{
		RequestID: newID(), TaskType: e.task, WorkflowID: "aod-check", StageID: "aod-check", UserID: "aod-check",
		Mode: agenthttp.DefaultMode, RiskTier: "NON_SENSITIVE", DomainID: "clinical", Inputs: inputs,
		Budgets: agenthttp.Object("{}"),
	}
}

// unknown is a request for a task that no agent knows.
func (e *examiner) unknown() agenthttp.Request {
	return agenthttp.Request{
		RequestID: newID(), TaskType: "AOD_CHECK_" + rand.Text(), Mode: agenthttp.DefaultMode,
		Inputs: e.bait(),
	}
}

// bait is an input that a refusal must not repeat.
func (e *examiner) bait() agenthttp.Object {
	return agenthttp.Object(`{"aod_check":"` + e.canary + `"}`)
}
