package a2a

import (
	"context"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// handler does the protocol's methods for all bindings.
type handler struct{ *Server }

var _ a2asrv.RequestHandler = handler{}

// answered does a method. Its errors are refusals, which the call keeps.
func answered[T any](ctx context.Context, h handler, do func(*call) (T, error)) (T, error) {
	c := callOf(ctx)
	c.reached.Store(true)
	var result T
	err := httpwire.Catch(func() (err error) { result, err = do(c); return err })
	if err != nil {
		var none T
		r := h.refused(ctx, err)
		c.fail(r)
		return none, r
	}
	c.ready.Store(true)
	return result, nil
}

// SendMessage implements a2asrv.RequestHandler.
func (h handler) SendMessage(ctx context.Context, req *sdk.SendMessageRequest) (sdk.SendMessageResult, error) {
	task, err := answered(ctx, h, func(c *call) (*sdk.Task, error) {
		record, err := h.send(ctx, c, req)
		if err != nil {
			return nil, err
		}
		if !isImmediate(c, req) {
			if record, err = h.settled(ctx, record); err != nil {
				return nil, err
			}
		}
		return h.task(ctx, c, record, shown{history: historyOf(req), artifacts: true})
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
func (h handler) settled(ctx context.Context, record api.Record) (api.Record, error) {
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
func (h handler) SendStreamingMessage(ctx context.Context, req *sdk.SendMessageRequest) iter.Seq2[sdk.Event, error] {
	return h.streamed(ctx, historyOf(req), func(c *call) (api.Record, error) { return h.send(ctx, c, req) })
}

// SubscribeToTask implements a2asrv.RequestHandler.
func (h handler) SubscribeToTask(ctx context.Context, req *sdk.SubscribeToTaskRequest) iter.Seq2[sdk.Event, error] {
	return h.streamed(ctx, nil, func(c *call) (api.Record, error) {
		record, err := h.record(ctx, c, req.ID)
		if err == nil && record.Outcome != "" {
			err = refuse(notDone, "the task has ended: GetTask shows it")
		}
		return record, err
	})
}

// GetTask implements a2asrv.RequestHandler.
func (h handler) GetTask(ctx context.Context, req *sdk.GetTaskRequest) (*sdk.Task, error) {
	return answered(ctx, h, func(c *call) (*sdk.Task, error) {
		if err := checkHistory(req.HistoryLength); err != nil {
			return nil, err
		}
		record, err := h.record(ctx, c, req.ID)
		if err != nil {
			return nil, err
		}
		return h.task(ctx, c, record, shown{history: req.HistoryLength, artifacts: true})
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
func (h handler) CancelTask(ctx context.Context, req *sdk.CancelTaskRequest) (*sdk.Task, error) {
	return answered(ctx, h, func(c *call) (*sdk.Task, error) {
		record, err := h.record(ctx, c, req.ID)
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
		return h.task(ctx, c, record, shown{artifacts: true})
	})
}

// GetExtendedAgentCard implements a2asrv.RequestHandler.
func (h handler) GetExtendedAgentCard(ctx context.Context, _ *sdk.GetExtendedAgentCardRequest) (*sdk.AgentCard, error) {
	return answered(ctx, h, func(c *call) (*sdk.AgentCard, error) {
		card, _, err := h.card(ctx, c.unit, c.base, true)
		if err != nil || c.legacy || c.grpc {
			return card, err
		}
		return withoutRequirements(card), nil
	})
}

// record returns the run that is a task of the call's agent.
func (h handler) record(ctx context.Context, c *call, id sdk.TaskID) (api.Record, error) {
	unknown := refuse(noTask, "this agent has no such task")
	if id == "" {
		return api.Record{}, refuse(badParams, "the task's id is missing")
	}
	if !httpwire.IsRunID(string(id)) {
		return api.Record{}, unknown
	}
	record, err := h.svc.Get(ctx, string(id))
	if fault.Is(err, fault.NotFound) || err == nil && (record.Parent != "" || c.unit != "" && record.Unit != c.unit) {
		return api.Record{}, unknown
	}
	return record, err
}

// maxID bounds ids that clients choose, in bytes.
const maxID = 256

// isID reports whether a client may have chosen an id.
func isID(id string) bool {
	return id != "" && len(id) <= maxID && utf8.ValidString(id) && !strings.ContainsFunc(id, unicode.IsControl)
}
