package a2a

import (
	"context"
	"errors"
	"iter"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// handler does the protocol's methods for all bindings.
type handler struct {
	svc      Service
	push     Push // nil: there is none
	tasks    tasks
	messages *messages
	cards    cards
	refusals refusals
}

var _ a2asrv.RequestHandler = (*handler)(nil)

// answered does a method. Its errors are refusals, which the call keeps.
func answered[T any](ctx context.Context, h *handler, do func(*call) (T, error)) (T, error) {
	c := callOf(ctx)
	c.reached.Store(true)
	var result T
	err := httpwire.Catch(func() (err error) {
		if err = h.admits(ctx, c); err == nil {
			result, err = do(c)
		}
		return err
	})
	if err != nil {
		var none T
		r := h.refusals.of(ctx, err)
		c.fail(r)
		return none, r
	}
	c.ready.Store(true)
	return result, nil
}

// admits refuses a call to one agent that its client may not ask. From here on the call knows it by its full name.
func (h *handler) admits(ctx context.Context, c *call) error {
	if c.unit == "" {
		return nil
	}
	c.unit = h.svc.FullName(ctx, c.unit)
	return h.tasks.admits(ctx, c.unit)
}

// SendMessage implements a2asrv.RequestHandler.
func (h *handler) SendMessage(ctx context.Context, req *sdk.SendMessageRequest) (sdk.SendMessageResult, error) {
	task, err := answered(ctx, h, func(c *call) (*sdk.Task, error) {
		record, err := h.messages.send(ctx, c, req)
		if err != nil {
			return nil, err
		}
		if !isImmediate(c, req) {
			if record, err = h.settled(ctx, record); err != nil {
				return nil, err
			}
		}
		return h.tasks.show(ctx, c, record, shown{history: historyOf(req), artifacts: true})
	})
	if err != nil {
		return nil, err
	}
	return task, nil
}

func isImmediate(c *call, req *sdk.SendMessageRequest) bool {
	if c.immediate != nil {
		return *c.immediate
	}
	return req.Config != nil && req.Config.ReturnImmediately
}

func historyOf(req *sdk.SendMessageRequest) *int {
	if req.Config == nil {
		return nil
	}
	return req.Config.HistoryLength
}

// settled waits until a run has ended or asks something.
func (h *handler) settled(ctx context.Context, record api.Record) (api.Record, error) {
	if record.Outcome != "" || record.Question != nil {
		return record, nil
	}
	ctx, stop := httpwire.Attached(ctx)
	defer stop()
	record, err := h.svc.AwaitAsked(ctx, record.ID)
	if err != nil || record.Outcome != "" || record.Question != nil {
		return record, err
	}
	if ctx.Err() != nil {
		return record, context.Cause(ctx)
	}
	return record, httpwire.ErrServerEnds // it lets the run go on without it
}

// SendStreamingMessage implements a2asrv.RequestHandler.
func (h *handler) SendStreamingMessage(ctx context.Context, req *sdk.SendMessageRequest) iter.Seq2[sdk.Event, error] {
	return h.streamed(ctx, historyOf(req), func(c *call) (api.Record, error) { return h.messages.send(ctx, c, req) })
}

// SubscribeToTask implements a2asrv.RequestHandler.
func (h *handler) SubscribeToTask(ctx context.Context, req *sdk.SubscribeToTaskRequest) iter.Seq2[sdk.Event, error] {
	return h.streamed(ctx, nil, func(c *call) (api.Record, error) {
		record, err := h.tasks.record(ctx, c, req.ID)
		if err == nil && record.Outcome != "" {
			err = refuse(notDone, "the task has ended: GetTask shows it")
		}
		return record, err
	})
}

// GetTask implements a2asrv.RequestHandler.
func (h *handler) GetTask(ctx context.Context, req *sdk.GetTaskRequest) (*sdk.Task, error) {
	return answered(ctx, h, func(c *call) (*sdk.Task, error) {
		if err := checkHistory(req.HistoryLength); err != nil {
			return nil, err
		}
		record, err := h.tasks.record(ctx, c, req.ID)
		if err != nil {
			return nil, err
		}
		return h.tasks.show(ctx, c, record, shown{history: req.HistoryLength, artifacts: true})
	})
}

// ListTasks implements a2asrv.RequestHandler.
func (h *handler) ListTasks(ctx context.Context, req *sdk.ListTasksRequest) (*sdk.ListTasksResponse, error) {
	return answered(ctx, h, func(c *call) (*sdk.ListTasksResponse, error) {
		filter, keep, err := filterOf(c, req)
		if err != nil {
			return nil, err
		}
		show := shown{history: req.HistoryLength, artifacts: req.IncludeArtifacts}
		if show.history == nil {
			show.history = new(int) // a list is short unless it is asked to be long
		}
		l := listing{tasks: h.tasks, call: c, show: show, keep: keep}
		return l.page(ctx, filter)
	})
}

func checkHistory(length *int) error {
	if length != nil && *length < 0 {
		return refuse(badParams, "historyLength is below zero")
	}
	return nil
}

// cancelTime is how long a cancelled task's end is waited for.
const cancelTime = 10 * time.Second

// CancelTask implements a2asrv.RequestHandler.
func (h *handler) CancelTask(ctx context.Context, req *sdk.CancelTaskRequest) (*sdk.Task, error) {
	return answered(ctx, h, func(c *call) (*sdk.Task, error) {
		record, err := h.tasks.record(ctx, c, req.ID)
		if err != nil {
			return nil, err
		}
		ended := refuse(notCancelable, "the task has ended already")
		if record.Outcome != "" {
			return nil, ended
		}
		if _, err := h.svc.Cancel(ctx, record.ID, "its A2A client asked for it"); fault.Is(err, fault.Conflict) {
			return nil, ended
		} else if err != nil {
			return nil, err
		}
		attached, stop := httpwire.Attached(ctx)
		defer stop()
		wait, cancel := context.WithTimeout(attached, cancelTime)
		defer cancel()
		if record, err = h.svc.Await(wait, record.ID); err != nil && wait.Err() == nil {
			return nil, err
		}
		if record, err = h.svc.Get(ctx, string(req.ID)); err != nil {
			return nil, err
		}
		return h.tasks.show(ctx, c, record, shown{artifacts: true})
	})
}

// GetExtendedAgentCard implements a2asrv.RequestHandler.
func (h *handler) GetExtendedAgentCard(
	ctx context.Context, _ *sdk.GetExtendedAgentCardRequest,
) (*sdk.AgentCard, error) {
	return answered(ctx, h, func(c *call) (*sdk.AgentCard, error) {
		card, _, err := h.cards.of(ctx, c.unit, c.base, true)
		if err != nil || c.grpc {
			return card, err
		}
		if !c.legacy {
			return withoutRequirements(card), nil
		}
		// The SDK would leave out the security schemes, and show interfaces of 1.0 as those of 0.3.
		raw, err := cardJSON(ctx, card, version03)
		c.showsCard(raw)
		return card, err
	})
}

var errLeft = errors.New("the subscriber has left")

// streamed yields a task as it stands, and then its changes until its end.
func (h *handler) streamed(
	ctx context.Context, history *int, run func(*call) (api.Record, error),
) iter.Seq2[sdk.Event, error] {
	return func(yield func(sdk.Event, error) bool) {
		c := callOf(ctx)
		c.reached.Store(true)
		ctx, stop := httpwire.Attached(ctx)
		defer stop()
		err := httpwire.Catch(func() error {
			if err := h.admits(ctx, c); err != nil {
				return err
			}
			end, err := httpwire.OpenStream(ctx)
			if err != nil {
				return err
			}
			defer end()
			return h.stream(ctx, c, history, run, yield)
		})
		if err == nil || errors.Is(err, errLeft) {
			return
		}
		r := h.refusals.of(ctx, err)
		c.fail(r)
		yield(nil, r)
	}
}

func (h *handler) stream(
	ctx context.Context, c *call, history *int, run func(*call) (api.Record, error), yield func(sdk.Event, error) bool,
) error {
	record, err := run(c)
	if err != nil {
		return err
	}
	p, err := h.tasks.project(ctx, c, record)
	if err != nil {
		return err
	}
	c.ready.Store(true)
	c.sends(true)
	if !yield(p.shown(shown{history: history, artifacts: true}), nil) {
		return errLeft
	}
	if p.ended {
		return nil
	}
	p.forget()
	return p.follow(ctx, yield)
}
