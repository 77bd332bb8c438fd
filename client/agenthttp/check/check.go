package check

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client/agenthttp"
	"github.com/agent-on-demand/aod/internal/checklist"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Verdict is the outcome of one rule.
type Verdict = checklist.Verdict

// The verdicts.
const (
	Pass          = checklist.Pass
	Fail          = checklist.Fail
	Advice        = checklist.Advice        // the contract is kept, and readers would be better served otherwise
	NotApplicable = checklist.NotApplicable // there was nothing to judge
)

// Result is one rule with its verdict. Its reason is empty for a pass, and quotes no value of the agent's.
type Result = checklist.Result

// Report is the result of Agent for one agent, every rule in a fixed order.
type Report = checklist.Report

// rule makes one rule of a Report.
var rule = checklist.NewRule[*evidence]

// Target is an agent to check, and a task that it knows.
type Target struct {
	URL      string
	TaskType string // "" skips the checks that need a task
}

// ParseTarget reads URL or URL=TASK.
func ParseTarget(text string) (Target, error) {
	target := Target{URL: strings.TrimSpace(text)}
	if at := strings.LastIndexByte(target.URL, '='); at >= 0 && !strings.Contains(target.URL[at:], "/") {
		target.URL, target.TaskType = target.URL[:at], target.URL[at+1:]
		if target.TaskType == "" {
			return Target{}, fault.New(fault.Input, "the agent to check has no task type after the =").
				WithHint("write URL=TASK, or URL alone")
		}
	}
	if err := httpwire.CheckAgentAddress(target.URL, true); err != nil {
		return Target{}, err
	}
	target.URL = strings.TrimRight(target.URL, "/")
	return target, nil
}

// ParseTargets reads a list with commas, as AGENT_CONTRACT_TARGETS holds it (section
// "Running the stream contract check locally").
func ParseTargets(list string) ([]Target, error) {
	var targets []Target
	for part := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		target, err := ParseTarget(part)
		if err != nil {
			return nil, err
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// Plain reports whether requests to the agent can be read on the way.
func (t Target) Plain() bool {
	return httpwire.CheckAgentAddress(t.URL, true) == nil && httpwire.CheckAgentAddress(t.URL, false) != nil
}

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
	return Report{Target: target.URL, TaskType: target.TaskType, Checks: checklist.Judge(checks(), found)}, nil
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
