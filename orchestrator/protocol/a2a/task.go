package a2a

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// shown is what of a task is shown.
type shown struct {
	history   *int // messages, the last ones; nil: all
	artifacts bool
}

func (s shown) messages() bool { return s.history == nil || *s.history > 0 }

// tasks are the runs of a Service, as the protocol has them.
type tasks struct{ svc Service }

const noAgentText = "there is no such unit"

// admits refuses a call to an agent that its client may not ask.
func (t tasks) admits(ctx context.Context, unit string) error {
	err := t.svc.Admits(ctx, unit)
	if fault.Is(err, fault.NotFound) {
		return refuse(noAgent, noAgentText)
	}
	return err
}

// record returns the run that is a task of the call's agent.
func (t tasks) record(ctx context.Context, c *call, id sdk.TaskID) (api.Record, error) {
	unknown := refuse(noTask, "task not found: the agent has none of this id")
	if id == "" {
		return api.Record{}, refuse(badParams, "the task's id is missing")
	}
	if !httpwire.IsRunID(string(id)) {
		return api.Record{}, unknown
	}
	record, err := t.svc.Get(ctx, string(id))
	if fault.Is(err, fault.NotFound) || err == nil && (record.Parent != "" || c.unit != "" && record.Unit != c.unit) {
		return api.Record{}, unknown
	}
	if err == nil && c.unit == "" && t.svc.Admits(ctx, record.Unit) != nil {
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

// show shows a run as a task.
func (t tasks) show(ctx context.Context, c *call, record api.Record, show shown) (*sdk.Task, error) {
	if !show.messages() && !show.artifacts {
		bare := newTask(record)
		var err error
		bare.Status, err = t.status(ctx, record)
		return bare, err
	}
	p, err := t.project(ctx, c, record)
	if err != nil {
		return nil, err
	}
	return p.shown(show), nil
}

// newTask is a task at its beginning.
func newTask(record api.Record) *sdk.Task {
	return &sdk.Task{
		ID: sdk.TaskID(record.ID), ContextID: contextOf(record), Metadata: map[string]any{unitKey: record.Unit},
		Status: sdk.TaskStatus{State: sdk.TaskStateSubmitted, Timestamp: stamp(record.CreatedAt)},
	}
}

// status is the status of a task by its record alone.
func (t tasks) status(ctx context.Context, record api.Record) (sdk.TaskStatus, error) {
	if record.Outcome != "" {
		return endOf(record), nil
	}
	if record.Question != nil {
		return t.asking(ctx, record, record.Question.ID)
	}
	return sdk.TaskStatus{State: stateShown(record), Timestamp: stamp(changed(record))}, nil
}

// changed is when the record's last transition was.
func changed(record api.Record) time.Time {
	if record.ChangedAt != nil {
		return *record.ChangedAt
	}
	return record.CreatedAt
}

// endedAt is when a record came to its end. What follows that, such as its container's removal, is
// no change of the task.
func endedAt(record api.Record) time.Time {
	for _, at := range slices.Backward(record.Transitions) {
		if at.State != api.Cleanup && at.State != api.Idle {
			return at.At
		}
	}
	return changed(record)
}

// stamp is a time as the protocol writes it: UTC, in milliseconds.
func stamp(at time.Time) *time.Time {
	at = at.UTC().Truncate(time.Millisecond)
	return &at
}

// stateOf is the state of a task that goes on.
func stateOf(state api.State) sdk.TaskState {
	if state == api.Idle || state == "" {
		return sdk.TaskStateSubmitted
	}
	return sdk.TaskStateWorking
}

// rejectedType is the type of error with which a program says that it won't do a task.
const rejectedType = "Rejected"

// endOf is the status of a task that has ended.
func endOf(record api.Record) sdk.TaskStatus {
	status := sdk.TaskStatus{State: sdk.TaskStateFailed, Timestamp: stamp(endedAt(record))}
	e := record.Error
	switch {
	case record.Outcome == api.Success:
		status.State = sdk.TaskStateCompleted
		return status
	case record.Outcome == api.WasCancelled:
		status.State = sdk.TaskStateCanceled
	case record.Outcome == api.InvalidInput || e != nil && e.Type == rejectedType:
		status.State = sdk.TaskStateRejected
	}
	text, meta := "the task gave no result", map[string]any{"kind": string(record.Outcome)}
	if e != nil {
		text = e.Message
		meta["kind"], meta["category"] = e.Kind, string(e.Category)
		if e.Type != "" {
			meta["type"] = e.Type
		}
	}
	status.Message = agentMessage(record, record.ID+"-end", meta, sdk.NewTextPart(text))
	return status
}

// agentMessage is a message of an agent about a task.
func agentMessage(record api.Record, id string, metadata map[string]any, parts ...*sdk.Part) *sdk.Message {
	return &sdk.Message{
		ID: id, TaskID: sdk.TaskID(record.ID), ContextID: contextOf(record), Role: sdk.MessageRoleAgent,
		Parts: parts, Metadata: metadata,
	}
}

// asking is the status of a task with an open question.
func (t tasks) asking(ctx context.Context, record api.Record, question string) (sdk.TaskStatus, error) {
	q, err := t.svc.Question(ctx, question)
	if err != nil {
		return sdk.TaskStatus{}, err
	}
	status := sdk.TaskStatus{State: sdk.TaskStateInputRequired, Timestamp: stamp(q.AskedAt)}
	if q.Kind == api.QuestionAuth {
		status.State = sdk.TaskStateAuthRequired
	}
	parts := []*sdk.Part{sdk.NewTextPart(q.Text)}
	answers := make([]any, len(q.Answers))
	for i, answer := range q.Answers {
		answers[i] = answer
	}
	data := map[string]any{"answers": answers}
	for key, raw := range map[string]json.RawMessage{"form": q.Form, "show": q.Show} {
		if value, ok := valueOf(raw); ok {
			data[key] = value
		}
	}
	if len(q.Answers) > 0 || len(data) > 1 {
		parts = append(parts, sdk.NewDataPart(data))
	}
	metadata := map[string]any{"question": q.ID, "kind": string(q.Kind)}
	if len(q.Approvers) > 0 {
		metadata["approvers"] = strings.Join(q.Approvers, ", ") // who alone may answer
	}
	status.Message = agentMessage(record, q.ID, metadata, parts...)
	return status, nil
}

// valueOf decodes JSON that was stored.
func valueOf(raw json.RawMessage) (any, bool) {
	if len(raw) == 0 {
		return nil, false
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil, false
	}
	return value, value != nil
}
