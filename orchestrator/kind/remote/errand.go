package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// cancelTime bounds how long an agent is asked to end its task when nobody wants that any more.
const cancelTime = 5 * time.Second

// errand is a run at an agent of the A2A protocol. Its task there outlives this process.
type errand struct {
	*execution
	remote *capsule.Remote
	client *a2apeer.Client
	agent  *a2apeer.Agent // at kept.At; nil before that is known
	kept   keptErrand
	task   a2apeer.Task // as the agent told last

	throttle handoff.Throttle
	heardAt  time.Time     // when the agent answered last
	wait     time.Duration // before it is asked again how the task stands
	answered string        // the mark of the status whose question was answered last
	grace    int           // how often that status was seen since
	tries    int           // how often the answer that is kept was not taken
}

// keptErrand is what the next process needs of an errand.
type keptErrand struct {
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

// errand returns the run's errand as an earlier attempt or process kept it. The error is a fault.
func (x *execution) errand() (*errand, error) {
	remote, err := agentOf(x.Unit)
	if err != nil {
		return nil, err
	}
	e := &errand{execution: x, remote: remote, heardAt: time.Now()}
	if e.client, x.secret, err = x.agents.peer(x.Unit, remote); err != nil {
		return nil, err
	}
	switch saved := x.Saved.(type) {
	case keptErrand:
		e.kept = saved
	case json.RawMessage:
		if err := json.Unmarshal(saved, &e.kept); len(saved) > 0 && err != nil {
			return nil, fault.Wrap(fault.Internal, err, "what is stored of the agent's task can't be read")
		}
	}
	if e.kept.Task == "" {
		return e, nil
	}
	e.task = a2apeer.Task{ID: e.kept.Task, Context: e.kept.Context}
	e.agent, err = e.client.At(e.kept.At)
	return e, err
}

// noErrand is the result of a run whose agent can't be asked.
func noErrand(err error) run.Result {
	if errors.As(err, new(*a2apeer.Violation)) {
		return new(errand).failed(err)
	}
	return noSecret(err)
}

// attemptErrand makes an attempt. One that follows another goes on with its task.
func (x *execution) attemptErrand(ctx context.Context) (run.Result, error) {
	e, err := x.errand()
	if err != nil {
		return noErrand(err), nil
	}
	began := time.Now().UTC()
	x.Record.StartedAt = &began
	return e.carryOut(ctx, e.begin)
}

// resumeErrand goes on with the task that an earlier process began.
func (x *execution) resumeErrand(ctx context.Context) (run.Result, error) {
	e, err := x.errand()
	if err != nil {
		return noErrand(err), nil
	}
	if asked := x.CancelRequest(); asked != nil {
		e.callOff(ctx)
		return run.Stopped(nil, asked), nil
	}
	if e.kept.Task == "" {
		if cause := context.Cause(ctx); cause != nil {
			return interrupted(cause, x.Limits)
		}
		return unheard(nil), nil
	}
	return e.carryOut(ctx, e.lead)
}

// carryOut has the errand led within the run's time, and returns how it ended. It returns an error only when this
// process has to stop.
func (e *errand) carryOut(ctx context.Context, lead func(context.Context) (run.Result, error)) (run.Result, error) {
	ctx, span := tracer.Start(ctx, "errand")
	defer span.End()
	if e.Record.StartedAt == nil {
		now := time.Now().UTC()
		e.Record.StartedAt = &now
	}
	limited, stop := context.WithDeadlineCause(ctx, e.Record.StartedAt.Add(e.Limits.Timeout), run.ErrTimeout)
	defer stop()
	result, err := lead(limited)
	e.Record.Timings.Run = run.Milliseconds(time.Since(*e.Record.StartedAt))
	var own hostError
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &own):
		return run.Result{}, own.error
	case limited.Err() != nil:
		return e.interrupted(limited)
	}
	result = e.failed(err)
	if result.Failure.Category != api.CategoryTransient { // else the next attempt goes on with the task
		e.callOff(ctx)
	}
	return result, nil
}

// interrupted is the result of an errand that AOD ended. Its task goes on only with the next process.
func (e *errand) interrupted(ctx context.Context) (run.Result, error) {
	cause := context.Cause(ctx)
	if !errors.Is(cause, runtime.ErrDetach) {
		e.callOff(ctx)
	}
	return interrupted(cause, e.Limits)
}

// callOff asks the agent to end the task, as well as that can be done.
func (e *errand) callOff(ctx context.Context) {
	if e.agent == nil || e.kept.Task == "" || e.task.State.Over() {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer stop()
	if _, err := e.agent.Cancel(ctx, e.kept.Task); err != nil {
		e.agents.logger.Warn("task of an agent elsewhere not cancelled", "run", e.ID, fault.LogAttr(err))
	}
}

// begin asks the agent for the task, unless an earlier attempt did, and leads it.
func (e *errand) begin(ctx context.Context) (run.Result, error) {
	if e.kept.Task != "" {
		if err := e.enter(); err != nil {
			return run.Result{}, err
		}
		return e.lead(ctx)
	}
	message, err := e.message()
	if err != nil {
		return run.Result{}, err
	}
	card, err := e.client.Card(ctx)
	if err != nil {
		return run.Result{}, err
	}
	e.kept.Streams, e.kept.At = e.remote.Stream && card.Streams, card.Interfaces[0]
	if err := e.enter(); err != nil { // from here on the agent may have the message
		return run.Result{}, err
	}
	if err := e.send(ctx, message, card.Interfaces); err != nil {
		return run.Result{}, err
	}
	return e.lead(ctx)
}

// enter stores that the errand runs.
func (e *errand) enter() error {
	e.Saved = e.kept
	if err := e.Enter(api.Running, ""); err != nil {
		return hostError{err}
	}
	return nil
}

// keep stores the errand as it is now.
func (e *errand) keep() error {
	e.Saved = e.kept
	if err := e.KeepSaved(); err != nil {
		return hostError{err}
	}
	return nil
}

// send sends the first message to the best of the interfaces that the agent speaks.
func (e *errand) send(ctx context.Context, message a2apeer.Message, interfaces []a2apeer.Interface) (err error) {
	for _, at := range interfaces {
		e.kept.At = at
		if e.agent, err = e.client.At(at); err != nil {
			return err
		}
		err = e.say(ctx, message)
		if isLost(err) && e.kept.Task != "" { // it goes on, and is followed
			return nil
		}
		if !a2apeer.IsUnspoken(err) {
			return err
		}
	}
	return err
}

// say sends a message, and hears what the agent tells of the task.
func (e *errand) say(ctx context.Context, message a2apeer.Message) error {
	if e.kept.Streams {
		task, err := e.agent.Stream(ctx, message, e.hear)
		switch {
		case err == nil && task.State == "":
			return &streamless{}
		case err == nil:
			return nil
		case !a2apeer.IsReason(err, "UNSUPPORTED_OPERATION"):
			return err
		}
		e.kept.Streams = false
	}
	task, err := e.agent.Send(ctx, message)
	if err != nil {
		return err
	}
	return e.hear(task)
}

// hear takes in how the task stands. It is stored before anything is waited for.
func (e *errand) hear(task a2apeer.Task) error {
	before := e.task.Words
	e.task, e.heardAt = task, time.Now()
	if e.kept.Task == "" && task.ID != "" {
		e.kept.Task, e.kept.Context = task.ID, task.Context
		if err := e.keep(); err != nil {
			return err
		}
	}
	if task.Words != before && !task.State.Over() {
		e.tell(task.Words)
	}
	return nil
}

// tell shows the words of a status as progress.
func (e *errand) tell(words string) {
	p := handoff.Progress{Message: e.hide(words)}.Fit()
	if p.Message != "" && e.throttle.Allow(time.Now()) {
		e.Tell(run.Event{Progress: &p})
	}
}

// lead hears of the task until it is over. When the admission of this process ends, the next one goes on with it.
func (e *errand) lead(ctx context.Context) (result run.Result, err error) {
	waiting, stop := e.Waiting(ctx)
	defer stop()
	for err == nil {
		switch {
		case e.task.State.Over():
			return e.result(ctx)
		case e.task.State.Asks():
			err = e.answer(waiting)
		default:
			err = e.follow(waiting)
		}
	}
	if cause := context.Cause(waiting); errors.Is(cause, runtime.ErrDetach) {
		return run.Result{}, hostError{cause}
	}
	return run.Result{}, err
}

// answerID is the id of the message with the nth answer. It is the same in each process.
func (e *errand) answerID(n int) string { return fmt.Sprintf("%s-%d", e.ID, n) }

// streamless is the error of a stream that told nothing.
type streamless struct{}

// Error implements error.
func (*streamless) Error() string { return "the agent's stream told of no task" }
