package a2apeer

import (
	"context"
	"errors"
	"iter"
	"log/slog"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/log"

	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Send sends a message and returns its task as the answer has it: agents are asked to answer at once, and some answer
// when they are done. The error is a *Violation, a *Refusal, an Unavailable or a Deadline fault, or the cause of ctx's
// end. Where the agent may have the message nonetheless, errors.Is finds ErrUnheard.
func (a *Agent) Send(ctx context.Context, m Message) (Task, error) {
	task := Task{ID: m.Task, Context: m.Context}
	x := &exchange{form: document, most: MaxAnswer}
	err := x.call(ctx, func(ctx context.Context) error {
		result, err := a.wire.SendMessage(ctx, a.params, m.request(a.tenant))
		if err != nil {
			return err
		}
		return x.folds(&task, result)
	})
	return task, x.unheard(err)
}

// Stream is Send for an agent that streams. It calls heard with the task after each change, and returns it as it stands
// when the stream ends, or the task ends or asks. An error of heard ends the stream and is returned.
func (a *Agent) Stream(ctx context.Context, m Message, heard func(Task) error) (Task, error) {
	task := Task{ID: m.Task, Context: m.Context}
	x := &exchange{form: events, most: MaxEvent}
	known := false
	err := x.follow(ctx, &task, func(t Task) error {
		known = true
		return heard(t)
	}, func(ctx context.Context) iter.Seq2[a2a.Event, error] {
		return a.wire.SendStreamingMessage(ctx, a.params, m.request(a.tenant))
	})
	if known {
		return task, err
	}
	return task, x.unheard(err)
}

// Get returns a task as it stands. Errors are those of Send.
func (a *Agent) Get(ctx context.Context, id string) (Task, error) {
	none := 0
	return asked(ctx, id, func(ctx context.Context) (*a2a.Task, error) {
		return a.wire.GetTask(ctx, a.params,
			&a2a.GetTaskRequest{Tenant: a.tenant, ID: a2a.TaskID(id), HistoryLength: &none})
	})
}

// Cancel asks the agent to end a task, and returns it as it stands then. Errors are those of Send.
func (a *Agent) Cancel(ctx context.Context, id string) (Task, error) {
	return asked(ctx, id, func(ctx context.Context) (*a2a.Task, error) {
		return a.wire.CancelTask(ctx, a.params, &a2a.CancelTaskRequest{Tenant: a.tenant, ID: a2a.TaskID(id)})
	})
}

// asked is a task as a call of the SDK that is answered at once tells of it.
func asked(ctx context.Context, id string, call func(context.Context) (*a2a.Task, error)) (Task, error) {
	task := Task{ID: id}
	x := &exchange{form: document, most: MaxAnswer}
	limited, stop := context.WithTimeoutCause(ctx, CallTime, errTimeout)
	defer stop()
	err := x.call(limited, func(ctx context.Context) error {
		result, err := call(ctx)
		if err != nil {
			return err
		}
		return x.folds(&task, result)
	})
	return task, err
}

// Subscribe follows a task that is known, as Stream does one that it begins.
func (a *Agent) Subscribe(ctx context.Context, task Task, heard func(Task) error) (Task, error) {
	x := &exchange{form: events, most: MaxEvent}
	err := x.follow(ctx, &task, heard, func(ctx context.Context) iter.Seq2[a2a.Event, error] {
		return a.wire.SubscribeToTask(ctx, a.params,
			&a2a.SubscribeToTaskRequest{Tenant: a.tenant, ID: a2a.TaskID(task.ID)})
	})
	return task, err
}

// quiet is where the SDK logs.
var quiet = slog.New(slog.DiscardHandler)

// call makes a call of the SDK, and explains its error.
func (x *exchange) call(ctx context.Context, do func(context.Context) error) error {
	err := httpwire.Catch(func() error { return do(log.AttachLogger(x.begin(ctx), quiet)) })
	if err == nil {
		return nil
	}
	var panicked *httpwire.PanicError // the SDK's, over something that the agent sent
	if errors.As(err, &panicked) && x.violation == nil {
		return broken(RuleAnswer, "an answer is none of the protocol")
	}
	return explain(ctx, x, err)
}

// folds takes what an answer tells into the task.
func (x *exchange) folds(task *Task, e a2a.Event) error {
	err := task.fold(e)
	var against *Violation
	if errors.As(err, &against) {
		x.violation = against
	}
	return err
}

// follow reads a stream until it or its task ends, or the task asks.
func (x *exchange) follow(
	ctx context.Context, task *Task, heard func(Task) error, open func(context.Context) iter.Seq2[a2a.Event, error],
) error {
	ctx, silence := httpwire.WatchSilence(ctx, silenceTime)
	defer silence.Stop(nil)
	x.silence = silence
	var own error
	err := x.call(ctx, func(ctx context.Context) error {
		for e, err := range open(ctx) {
			if err == nil {
				err = x.folds(task, e)
			}
			if err != nil {
				return err
			}
			if own = heard(*task); own != nil || task.State.Over() || task.State.Asks() {
				return nil
			}
		}
		return nil
	})
	if err == nil {
		err = own
	}
	return err
}

// unheard marks an error after which nobody knows whether the agent has the message.
func (x *exchange) unheard(err error) error {
	var refused *Refusal
	if err == nil || errors.As(err, &refused) || !x.sent.Load() {
		return err
	}
	return &unheardError{err}
}

// unheardError is an error with ErrUnheard in its chain.
type unheardError struct{ error }

// Unwrap returns the error and ErrUnheard.
func (e *unheardError) Unwrap() []error { return []error{e.error, ErrUnheard} }
