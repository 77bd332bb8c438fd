package a2a

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
)

// shown is what of a task is shown.
type shown struct {
	history   *int // messages, the last ones; nil: all
	artifacts bool
}

func (s shown) messages() bool { return s.history == nil || *s.history > 0 }

// task shows a run as a task.
func (h handler) task(ctx context.Context, c *call, record api.Record, show shown) (*sdk.Task, error) {
	if !show.messages() && !show.artifacts {
		t := newTask(record)
		var err error
		t.Status, err = h.status(ctx, record)
		return t, err
	}
	v, err := h.viewOf(ctx, c, record)
	if err != nil {
		return nil, err
	}
	return v.shown(show), nil
}

// newTask is a task at its beginning.
func newTask(record api.Record) *sdk.Task {
	return &sdk.Task{
		ID: sdk.TaskID(record.ID), ContextID: contextOf(record), Metadata: map[string]any{unitKey: record.Unit},
		Status: sdk.TaskStatus{State: sdk.TaskStateSubmitted, Timestamp: stamp(record.CreatedAt)},
	}
}

// status is the status of a task by its record alone.
func (h handler) status(ctx context.Context, record api.Record) (sdk.TaskStatus, error) {
	if record.Outcome != "" {
		return endOf(record), nil
	}
	if record.Question != nil {
		return h.asking(ctx, record, record.Question.ID)
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
	for _, t := range slices.Backward(record.Transitions) {
		if t.State != api.Cleanup && t.State != api.Idle {
			return t.At
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
	status.Message = said(record, record.ID+"-end", meta, sdk.NewTextPart(text))
	return status
}

// said is a message of an agent about a task.
func said(record api.Record, id string, metadata map[string]any, parts ...*sdk.Part) *sdk.Message {
	return &sdk.Message{
		ID: id, TaskID: sdk.TaskID(record.ID), ContextID: contextOf(record), Role: sdk.MessageRoleAgent,
		Parts: parts, Metadata: metadata,
	}
}

// asking is the status of a task with an open question.
func (h handler) asking(ctx context.Context, record api.Record, question string) (sdk.TaskStatus, error) {
	q, err := h.svc.Question(ctx, question)
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
	status.Message = said(record, q.ID, map[string]any{"question": q.ID, "kind": string(q.Kind)}, parts...)
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

// view is a task as the events of its run make it.
type view struct {
	handler
	call   *call
	record api.Record
	task   *sdk.Task
	seq    int64 // of the last event
	ended  bool
	inline int64 // bytes of files that may still stand in the task
}

// viewOf is a task as it stands.
func (h handler) viewOf(ctx context.Context, c *call, record api.Record) (*view, error) {
	v := &view{handler: h, call: c, record: record, task: newTask(record), inline: maxInline}
	for event, err := range h.svc.Past(ctx, record.ID, 0) {
		if err != nil {
			return nil, err
		}
		if _, err := v.apply(ctx, event); err != nil {
			return nil, err
		}
	}
	if !v.ended && record.Outcome != "" { // its last event is being written
		_, err := v.end(ctx, record)
		return v, err
	}
	return v, nil
}

// shown is the task with what is shown of it. The view may go on.
func (v *view) shown(show shown) *sdk.Task {
	t := *v.task
	t.Artifacts, t.History = nil, nil
	if show.artifacts {
		t.Artifacts = slices.Clone(v.task.Artifacts)
	}
	if show.messages() {
		t.History = slices.Clone(v.task.History)
	}
	if show.history != nil && len(t.History) > *show.history {
		t.History = t.History[len(t.History)-*show.history:]
	}
	return &t
}

// apply has an event change the task, and returns what its subscribers are told.
func (v *view) apply(ctx context.Context, event api.Event) ([]sdk.Event, error) {
	v.seq = event.Seq
	if v.ended {
		return nil, nil
	}
	if err := v.call.hold(ctx, v.call.sizeOf(event.Data)); err != nil {
		return nil, err
	}
	data, err := event.Decode()
	if err != nil {
		return nil, err
	}
	switch data := data.(type) {
	case api.Transition:
		return v.transition(data), nil
	case api.ProgressEvent:
		return v.progress(event, data), nil
	case api.QuestionEvent:
		return v.question(ctx, data)
	case api.MessageEvent:
		return v.message(data), nil
	case api.ArtifactEvent:
		return v.artifact(ctx, data)
	case api.EndEvent:
		if v.record.Outcome != "" {
			return v.end(ctx, v.record)
		}
		record, err := v.svc.Get(ctx, v.record.ID)
		if err != nil {
			return nil, err
		}
		return v.end(ctx, record)
	}
	return nil, nil
}

// become gives the task a status, and tells of it.
func (v *view) become(status sdk.TaskStatus) []sdk.Event {
	v.task.Status = status
	return []sdk.Event{&sdk.TaskStatusUpdateEvent{TaskID: v.task.ID, ContextID: v.task.ContextID, Status: status}}
}

// transition follows the states of a run that goes on. Those of its end are told with its last
// event, when it is known that nothing is tried again.
func (v *view) transition(to api.Transition) []sdk.Event {
	switch to.State {
	case api.Idle, api.Starting, api.Running:
	default:
		return nil
	}
	state := stateOf(to.State)
	if state == v.task.Status.State || to.State == api.Idle {
		return nil // it is idle again between two attempts, and at its very end
	}
	if v.asks() {
		return nil // its question is open over the death of its server
	}
	return v.become(sdk.TaskStatus{State: state, Timestamp: stamp(to.At)})
}

// asks reports whether a question of the task is open.
func (v *view) asks() bool {
	return v.task.Status.State == sdk.TaskStateInputRequired || v.task.Status.State == sdk.TaskStateAuthRequired
}

// progress tells how far a unit is.
func (v *view) progress(event api.Event, p api.ProgressEvent) []sdk.Event {
	text := p.Message
	if text == "" {
		text = p.Step
	}
	if text == "" || v.task.Status.State != sdk.TaskStateWorking {
		return nil
	}
	meta := map[string]any{}
	if p.Percent != nil {
		meta["percent"] = *p.Percent
	}
	if p.Step != "" {
		meta["step"] = p.Step
	}
	m := said(v.record, eventID(v.record, event.Seq), meta, sdk.NewTextPart(text))
	return v.become(sdk.TaskStatus{State: sdk.TaskStateWorking, Message: m, Timestamp: v.task.Status.Timestamp})
}

// question tells that a run asks something, or doesn't any more.
func (v *view) question(ctx context.Context, q api.QuestionEvent) ([]sdk.Event, error) {
	if q.State == api.QuestionOpen {
		status, err := v.asking(ctx, v.record, q.ID)
		if err != nil {
			return nil, err
		}
		return v.become(status), nil
	}
	if m := v.task.Status.Message; m == nil || m.ID != q.ID {
		return nil, nil
	}
	return v.become(sdk.TaskStatus{State: sdk.TaskStateWorking, Timestamp: v.task.Status.Timestamp}), nil
}

// message keeps a message, and tells those of the agent.
func (v *view) message(m api.MessageEvent) []sdk.Event {
	message := &sdk.Message{
		ID: m.ID, TaskID: v.task.ID, ContextID: v.task.ContextID, Role: sdk.MessageRoleUser,
		Parts: v.call.spoken(m.Parts),
	}
	if meta, ok := valueOf(m.Metadata); ok {
		message.Metadata, _ = meta.(map[string]any)
	}
	if m.Role == api.RoleAgent {
		message.Role = sdk.MessageRoleAgent
	}
	v.task.History = append(v.task.History, message)
	if message.Role == sdk.MessageRoleUser {
		return nil
	}
	status := sdk.TaskStatus{State: v.task.Status.State, Message: message, Timestamp: stamp(m.At)}
	if v.asks() {
		status = v.task.Status // what it asks is still to be seen
	}
	return v.become(status)
}
