package mcp

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	tasksExtension = "io.modelcontextprotocol/tasks"

	// taskAfter is how long a call may take until it is a task.
	taskAfter = 5 * time.Second
	pollEvery = 1000 // milliseconds
)

// knowsTasks reports whether a client takes a task for an answer.
func knowsTasks(req *sdk.CallToolRequest) bool {
	if req.ProtocolVersion() < Stateless {
		return false
	}
	capabilities := req.ClientCapabilities()
	if capabilities == nil {
		return false
	}
	_, known := capabilities.Extensions[tasksExtension]
	return known
}

// task is a run as the extension tells of it: its id is the run's.
type task struct {
	sdk.ResultBase
	ResultType string     `json:"resultType"`
	TaskID     string     `json:"taskId"`
	Status     string     `json:"status"`
	Message    string     `json:"statusMessage,omitempty"`
	CreatedAt  time.Time  `json:"createdAt"`
	UpdatedAt  time.Time  `json:"lastUpdatedAt"`
	TTL        *int64     `json:"ttlMs"` // null: for as long as the run is kept
	Poll       int        `json:"pollIntervalMs"`
	Result     sdk.Result `json:"result,omitempty"`

	InputRequests sdk.InputRequestMap `json:"inputRequests,omitempty"`
}

func taskOf(record api.Record, resultType string) *task {
	t := &task{
		ResultType: resultType, TaskID: record.ID, Status: "working", Message: string(record.State.Status()),
		CreatedAt: record.CreatedAt, UpdatedAt: record.CreatedAt, Poll: pollEvery,
	}
	if n := len(record.Transitions); n > 0 {
		t.UpdatedAt = record.Transitions[n-1].At
	}
	return t
}

// taskParams are the parameters of the extension's methods.
type taskParams struct {
	sdk.ParamsBase
	TaskID         string               `json:"taskId"`
	InputResponses sdk.InputResponseMap `json:"inputResponses"` // to tasks/update
}

// taskRequest asks for something of a task.
type taskRequest = sdk.ServerRequest[*taskParams]

// emptyResult says that something was done.
type emptyResult struct {
	sdk.ResultBase
	ResultType string `json:"resultType"`
}

// tasks are runs as the extension tells of them.
type tasks struct{ calls *calls }

// addTo adds the methods of the extension to a server.
func (t tasks) addTo(server *sdk.Server) {
	methods := map[string]func(context.Context, *taskRequest, api.Record) (sdk.Result, error){
		"tasks/get": t.get, "tasks/cancel": t.cancel, "tasks/update": t.update,
	}
	for name, do := range methods {
		err := sdk.AddReceivingCustomMethod(server, name,
			func(ctx context.Context, session *sdk.ServerSession, params *taskParams) (sdk.Result, error) {
				record, err := t.recordOf(ctx, params)
				if err != nil {
					return nil, err
				}
				return do(ctx, &taskRequest{Session: session, Params: params}, record)
			})
		if err != nil {
			panic(err) // a newer SDK has the method
		}
	}
}

// recordOf returns the run of a task: only what a client of this protocol asked for is one.
func (t tasks) recordOf(ctx context.Context, params *taskParams) (api.Record, error) {
	none := invalid("there is no such task")
	if params == nil || !httpwire.IsRunID(params.TaskID) {
		return api.Record{}, none
	}
	record, err := t.calls.svc.Get(ctx, params.TaskID)
	if fault.Is(err, fault.NotFound) || err == nil && record.Metadata[ClientKey] == "" {
		return api.Record{}, none
	}
	return record, err
}

func (t tasks) get(ctx context.Context, req *taskRequest, record api.Record) (sdk.Result, error) {
	task := taskOf(record, "complete")
	switch {
	case record.Outcome == "" && record.Question != nil:
		return task, t.ask(ctx, req, task)
	case record.Outcome == "":
	case record.Outcome == api.WasCancelled:
		task.Status = "cancelled"
		if record.Error != nil {
			task.Message = record.Error.Message
		}
	default:
		task.Status, task.Result = "completed", t.calls.results.of(ctx, record)
	}
	return task, nil
}

// ask has a task ask its client what its run asks.
func (t tasks) ask(ctx context.Context, req *taskRequest, task *task) error {
	requests, refusal, err := t.calls.people.inputRequests(ctx, task.TaskID, req.ClientCapabilities())
	switch {
	case err != nil:
		return err
	case refusal != nil:
		t.calls.people.giveUp(ctx, task.TaskID, refusal.reason)
		task.Status, task.Message = "cancelled", refusal.reason+": "+refusal.hint
	case len(requests) > 0:
		task.Status, task.InputRequests = "input_required", requests
	}
	return nil
}

// update takes answers to what a task asks.
func (t tasks) update(ctx context.Context, req *taskRequest, record api.Record) (sdk.Result, error) {
	if _, err := t.calls.people.take(ctx, record.ID, req.Params.InputResponses); err != nil {
		return nil, err
	}
	return &emptyResult{ResultType: "complete"}, nil
}

func (t tasks) cancel(ctx context.Context, _ *taskRequest, record api.Record) (sdk.Result, error) {
	_, err := t.calls.svc.Cancel(ctx, record.ID, "its MCP client cancelled the task")
	if err != nil && !fault.Is(err, fault.Conflict) {
		return nil, err
	}
	return &emptyResult{ResultType: "complete"}, nil
}
