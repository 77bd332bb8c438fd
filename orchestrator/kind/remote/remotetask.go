package remote

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// cancelTime bounds how long an agent is asked to end its task when nobody wants that any more.
const cancelTime = 5 * time.Second

// How long a task waits before it asks again how its task stands, and for an agent that doesn't answer.
const (
	firstWait = 200 * time.Millisecond
	longWait  = 5 * time.Second
	patience  = 2 * time.Minute
)

// remoteTask is the task of a run at an agent of the A2A protocol. It outlives this process.
type remoteTask struct {
	x      *execution
	remote *capsule.Remote
	client *a2apeer.Client
	agent  *a2apeer.Agent // at kept.At; nil before that is known
	kept   keptTask
	task   a2apeer.Task // as the agent told last

	people   *answers
	throttle handoff.Throttle
	heardAt  time.Time     // when the agent answered last
	wait     time.Duration // before it is asked again how the task stands
}

// keptTask is what the next process needs of a task.
type keptTask struct {
	At        a2apeer.Interface `json:"at"`
	Streams   bool              `json:"streams,omitempty"` // the agent is asked for streams
	Task      string            `json:"task,omitempty"`    // "": the agent has told of none
	Context   string            `json:"context,omitempty"` // of the task
	Asked     int               `json:"asked,omitempty"`   // how many questions have an answer
	Answering *answering        `json:"answering,omitempty"`
}

// answering is an answer that the agent may not have yet.
type answering struct {
	Mark    string          `json:"mark"` // of the status that asks for it
	Message a2apeer.Message `json:"message"`
}

// hostError is an error of what leads the run: this process has to stop.
type hostError struct{ error }

// Unwrap returns the error.
func (e hostError) Unwrap() error { return e.error }

func (x *execution) speaksA2A() bool {
	agent, err := agentOf(x.Unit)
	return err == nil && agent.IsA2A()
}

// remoteTask returns the run's task as an earlier attempt or process kept it. The error is a fault.
func (x *execution) remoteTask() (*remoteTask, error) {
	remote, err := agentOf(x.Unit)
	if err != nil {
		return nil, err
	}
	t := &remoteTask{x: x, remote: remote, heardAt: time.Now()}
	t.people = &answers{t: t}
	if t.client, x.secret, err = x.agents.peer(x.Unit, remote); err != nil {
		return nil, err
	}
	switch saved := x.Saved.(type) {
	case keptTask:
		t.kept = saved
	case json.RawMessage:
		if err := json.Unmarshal(saved, &t.kept); len(saved) > 0 && err != nil {
			return nil, fault.Wrap(fault.Internal, err, "what is stored of the agent's task can't be read")
		}
	}
	if t.kept.Task == "" {
		return t, nil
	}
	t.task = a2apeer.Task{ID: t.kept.Task, Context: t.kept.Context}
	t.agent, err = t.client.At(t.kept.At)
	return t, err
}

// noTask is the result of a run whose agent can't be asked.
func (x *execution) noTask(err error) run.Result {
	if errors.As(err, new(*a2apeer.Violation)) {
		return taskEnd{x: x}.failed(err)
	}
	return noSecret(err)
}

// attemptTask makes an attempt. One that follows another goes on with its task.
func (x *execution) attemptTask(ctx context.Context) (run.Result, error) {
	t, err := x.remoteTask()
	if err != nil {
		return x.noTask(err), nil
	}
	began := time.Now().UTC()
	x.Record.StartedAt = &began
	return t.runAttempt(ctx, t.begin)
}

// resumeTask goes on with the task that an earlier process began.
func (x *execution) resumeTask(ctx context.Context) (run.Result, error) {
	t, err := x.remoteTask()
	if err != nil {
		return x.noTask(err), nil
	}
	if asked := x.CancelRequest(); asked != nil {
		t.cancelRemote(ctx)
		return run.Stopped(nil, asked), nil
	}
	if t.kept.Task == "" {
		if cause := context.Cause(ctx); cause != nil {
			return interrupted(cause, x.Limits)
		}
		return unheard(nil), nil
	}
	return t.runAttempt(ctx, t.poll)
}

// runAttempt has the task led within the run's time, and returns how it ended. It returns an error only when this
// process has to stop.
func (t *remoteTask) runAttempt(
	ctx context.Context, lead func(context.Context) (run.Result, error),
) (run.Result, error) {
	ctx, span := tracer.Start(ctx, "errand")
	defer span.End()
	if t.x.Record.StartedAt == nil {
		now := time.Now().UTC()
		t.x.Record.StartedAt = &now
	}
	limited, stop := context.WithDeadlineCause(ctx, t.x.Record.StartedAt.Add(t.x.Limits.Timeout), run.ErrTimeout)
	defer stop()
	result, err := lead(limited)
	t.x.Record.Timings.Run = run.Milliseconds(time.Since(*t.x.Record.StartedAt))
	var own hostError
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &own):
		return run.Result{}, own.error
	case limited.Err() != nil:
		return t.interrupted(limited)
	}
	result = t.end().failed(err)
	if result.Failure.Category != api.CategoryTransient { // else the next attempt goes on with the task
		t.cancelRemote(ctx)
	}
	return result, nil
}

// interrupted is the result of a task that AOD ended. Its task goes on only with the next process.
func (t *remoteTask) interrupted(ctx context.Context) (run.Result, error) {
	cause := context.Cause(ctx)
	if !errors.Is(cause, runtime.ErrDetach) {
		t.cancelRemote(ctx)
	}
	return interrupted(cause, t.x.Limits)
}

// cancelRemote asks the agent to end the task, as well as that can be done.
func (t *remoteTask) cancelRemote(ctx context.Context) {
	if t.agent == nil || t.kept.Task == "" || t.task.State.Over() {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer stop()
	if _, err := t.agent.Cancel(ctx, t.kept.Task); err != nil {
		t.x.agents.logger.Warn("task of an agent elsewhere not cancelled", "run", t.x.ID, fault.LogAttr(err))
	}
}

// begin asks the agent for the task, unless an earlier attempt did, and leads it.
func (t *remoteTask) begin(ctx context.Context) (run.Result, error) {
	if t.kept.Task != "" {
		if err := t.enter(); err != nil {
			return run.Result{}, err
		}
		return t.poll(ctx)
	}
	message, err := messageOf(t.x.Run)
	if err != nil {
		return run.Result{}, err
	}
	card, err := t.client.Card(ctx)
	if err != nil {
		return run.Result{}, err
	}
	t.kept.Streams, t.kept.At = t.remote.Stream && card.Streams, card.Interfaces[0]
	if err := t.enter(); err != nil { // from here on the agent may have the message
		return run.Result{}, err
	}
	if err := t.send(ctx, message, card.Interfaces); err != nil {
		return run.Result{}, err
	}
	return t.poll(ctx)
}

// enter stores that the task runs.
func (t *remoteTask) enter() error {
	t.x.Saved = t.kept
	if err := t.x.Enter(api.Running, ""); err != nil {
		return hostError{err}
	}
	return nil
}

// keep stores what is known of the task now.
func (t *remoteTask) keep() error {
	t.x.Saved = t.kept
	if err := t.x.KeepSaved(); err != nil {
		return hostError{err}
	}
	return nil
}

// send sends the first message to the best of the interfaces that the agent speaks.
func (t *remoteTask) send(ctx context.Context, message a2apeer.Message, interfaces []a2apeer.Interface) (err error) {
	for _, at := range interfaces {
		t.kept.At = at
		if t.agent, err = t.client.At(at); err != nil {
			return err
		}
		err = t.say(ctx, message)
		if isLost(err) && t.kept.Task != "" { // it goes on, and is followed
			return nil
		}
		if !a2apeer.IsUnspoken(err) {
			return err
		}
	}
	return err
}

// say sends a message, and hears what the agent tells of the task.
func (t *remoteTask) say(ctx context.Context, message a2apeer.Message) error {
	if t.kept.Streams {
		task, err := t.agent.Stream(ctx, message, t.observe)
		switch {
		case err == nil && task.State == "":
			return &streamless{}
		case err == nil:
			return nil
		case !a2apeer.IsReason(err, "UNSUPPORTED_OPERATION"):
			return err
		}
		t.kept.Streams = false
	}
	task, err := t.agent.Send(ctx, message)
	if err != nil {
		return err
	}
	return t.observe(task)
}

// observe takes in how the task stands. It is stored before anything is waited for.
func (t *remoteTask) observe(task a2apeer.Task) error {
	before := t.task.Words
	t.task, t.heardAt = task, time.Now()
	if t.kept.Task == "" && task.ID != "" {
		t.kept.Task, t.kept.Context = task.ID, task.Context
		if err := t.keep(); err != nil {
			return err
		}
	}
	if task.Words != before && !task.State.Over() {
		t.tell(task.Words)
	}
	return nil
}

// tell shows the words of a status as progress.
func (t *remoteTask) tell(words string) {
	p := handoff.Progress{Message: t.x.hide(words)}.Fit()
	if p.Message != "" && t.throttle.Allow(time.Now()) {
		t.x.Tell(run.Event{Progress: &p})
	}
}

// poll hears of the task until it is over. When the admission of this process ends, the next one goes on with it.
func (t *remoteTask) poll(ctx context.Context) (result run.Result, err error) {
	waiting, stop := t.x.Waiting(ctx)
	defer stop()
	for err == nil {
		switch {
		case t.task.State.Over():
			return t.result(ctx)
		case t.task.State.Asks():
			err = t.people.answer(waiting)
		default:
			err = t.follow(waiting)
		}
	}
	if cause := context.Cause(waiting); errors.Is(cause, runtime.ErrDetach) {
		return run.Result{}, hostError{cause}
	}
	return run.Result{}, err
}

// result decides what the end of the task means.
func (t *remoteTask) result(ctx context.Context) (run.Result, error) {
	if t.task.State != a2apeer.Completed {
		return t.end().of(t.task), nil
	}
	output := taskOutput{run: t.x.Run, task: t.task}
	output.files = outputFiles{run: t.x.Run, client: t.client, left: t.x.Limits.OutputBytes}
	return output.take(ctx)
}

// end makes the result of a task without an output.
func (t *remoteTask) end() taskEnd { return taskEnd{x: t.x, known: t.kept.Task != ""} }

// follow hears of the task by a stream, if the agent has them, and then asks how it stands.
func (t *remoteTask) follow(ctx context.Context) error {
	if t.kept.Streams && t.task.State != "" { // else it was never asked how the task stands
		_, err := t.agent.Subscribe(ctx, t.task, t.observe)
		switch {
		case err != nil && !isLost(err) && !a2apeer.IsReason(err, "UNSUPPORTED_OPERATION") &&
			!a2apeer.IsReason(err, "TASK_NOT_FOUND"):
			return err
		case t.task.State.Over() || t.task.State.Asks():
			return nil
		}
	}
	return t.look(ctx)
}

// look asks the agent how the task stands, after a while. An agent that doesn't answer is asked again.
func (t *remoteTask) look(ctx context.Context) error {
	if cause := pause.For(ctx, t.wait); cause != nil {
		return cause
	}
	t.wait = min(max(2*t.wait, firstWait), longWait)
	before := t.task.Mark
	task, err := t.agent.Get(ctx, t.kept.Task)
	switch {
	case err == nil && task.Mark != before:
		t.wait = firstWait
		return t.observe(task)
	case err == nil:
		return t.observe(task)
	case isLost(err) && time.Since(t.heardAt) < patience:
		return nil
	}
	return err
}

// isLost reports whether an error may pass: the agent has the task and doesn't answer, or is busy.
func isLost(err error) bool {
	var broken *a2apeer.Violation
	if errors.As(err, &broken) {
		return false
	}
	return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Deadline) || fault.Is(err, fault.Busy)
}

// streamless is the error of a stream that told nothing.
type streamless struct{}

// Error implements error.
func (*streamless) Error() string { return "the agent's stream told of no task" }
