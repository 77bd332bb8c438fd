package a2a

import (
	"context"
	"math"
	"slices"
	"strconv"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// taskProjection is a task as the events of its run make it.
type taskProjection struct {
	tasks  tasks
	call   *call
	record api.Record
	task   *sdk.Task
	seq    int64 // of the last event
	ended  bool
	files  fileParts
}

func (t tasks) newProjection(c *call, record api.Record) *taskProjection {
	return &taskProjection{
		tasks: t, call: c, record: record, task: newTask(record),
		files: fileParts{svc: t.svc, call: c, run: record.ID, inline: maxInline},
	}
}

// project returns a task as it stands.
func (t tasks) project(ctx context.Context, c *call, record api.Record) (*taskProjection, error) {
	p := t.newProjection(c, record)
	for event, err := range t.svc.Past(ctx, record.ID, 0) {
		if err != nil {
			return nil, err
		}
		if _, err := p.apply(ctx, event); err != nil {
			return nil, err
		}
	}
	if !p.ended && record.Outcome != "" { // its last event is being written
		_, err := p.end(ctx, record)
		return p, err
	}
	return p, nil
}

// shown is the task with what is shown of it. The projection may go on.
func (p *taskProjection) shown(show shown) *sdk.Task {
	t := *p.task
	t.Artifacts, t.History = nil, nil
	if show.artifacts {
		t.Artifacts = slices.Clone(p.task.Artifacts)
	}
	if show.messages() {
		t.History = slices.Clone(p.task.History)
	}
	if show.history != nil && len(t.History) > *show.history {
		t.History = t.History[len(t.History)-*show.history:]
	}
	return &t
}

// apply has an event change the task, and returns what its subscribers are told.
func (p *taskProjection) apply(ctx context.Context, event api.Event) ([]sdk.Event, error) {
	p.seq = event.Seq
	if p.ended {
		return nil, nil
	}
	if err := p.call.hold(ctx, p.call.sizeOf(event.Data)); err != nil {
		return nil, err
	}
	data, err := event.Decode()
	if err != nil {
		return nil, err
	}
	switch data := data.(type) {
	case api.Transition:
		return p.transition(data), nil
	case api.ProgressEvent:
		return p.progress(event, data), nil
	case api.QuestionEvent:
		return p.question(ctx, data)
	case api.MessageEvent:
		return p.message(data), nil
	case api.ArtifactEvent:
		return p.artifact(ctx, data)
	case api.EndEvent:
		if p.record.Outcome != "" {
			return p.end(ctx, p.record)
		}
		record, err := p.tasks.svc.Get(ctx, p.record.ID)
		if err != nil {
			return nil, err
		}
		return p.end(ctx, record)
	}
	return nil, nil
}

// setStatus gives the task a status, and tells of it.
func (p *taskProjection) setStatus(status sdk.TaskStatus) []sdk.Event {
	p.task.Status = status
	return []sdk.Event{&sdk.TaskStatusUpdateEvent{TaskID: p.task.ID, ContextID: p.task.ContextID, Status: status}}
}

// transition follows the states of a run that goes on. Those of its end are told with its last
// event, when it is known that nothing is tried again.
func (p *taskProjection) transition(to api.Transition) []sdk.Event {
	switch to.State {
	case api.Idle, api.Starting, api.Running:
	default:
		return nil
	}
	state := stateOf(to.State)
	if state == p.task.Status.State || to.State == api.Idle {
		return nil // it is idle again between two attempts, and at its very end
	}
	if p.asks() {
		return nil // its question is open over the death of its server
	}
	return p.setStatus(sdk.TaskStatus{State: state, Timestamp: stamp(to.At)})
}

// asks reports whether a question of the task is open.
func (p *taskProjection) asks() bool {
	return p.task.Status.State == sdk.TaskStateInputRequired || p.task.Status.State == sdk.TaskStateAuthRequired
}

// progress tells how far a unit is.
func (p *taskProjection) progress(event api.Event, said api.ProgressEvent) []sdk.Event {
	text := said.Message
	if text == "" {
		text = said.Step
	}
	if text == "" || p.task.Status.State != sdk.TaskStateWorking {
		return nil
	}
	meta := map[string]any{}
	if said.Percent != nil {
		meta["percent"] = *said.Percent
	}
	if said.Step != "" {
		meta["step"] = said.Step
	}
	m := agentMessage(p.record, eventID(p.record, event.Seq), meta, sdk.NewTextPart(text))
	return p.setStatus(sdk.TaskStatus{State: sdk.TaskStateWorking, Message: m, Timestamp: p.task.Status.Timestamp})
}

// question tells that a run asks something, or doesn't any more.
func (p *taskProjection) question(ctx context.Context, q api.QuestionEvent) ([]sdk.Event, error) {
	if q.State == api.QuestionOpen {
		status, err := p.tasks.asking(ctx, p.record, q.ID)
		if err != nil {
			return nil, err
		}
		return p.setStatus(status), nil
	}
	if m := p.task.Status.Message; m == nil || m.ID != q.ID {
		return nil, nil
	}
	return p.setStatus(sdk.TaskStatus{State: sdk.TaskStateWorking, Timestamp: p.task.Status.Timestamp}), nil
}

// message keeps a message, and tells those of the agent.
func (p *taskProjection) message(m api.MessageEvent) []sdk.Event {
	message := &sdk.Message{
		ID: m.ID, TaskID: p.task.ID, ContextID: p.task.ContextID, Role: sdk.MessageRoleUser,
		Parts: p.call.spoken(m.Parts),
	}
	if meta, ok := valueOf(m.Metadata); ok {
		message.Metadata, _ = meta.(map[string]any)
	}
	if m.Role == api.RoleAgent {
		message.Role = sdk.MessageRoleAgent
	}
	p.task.History = append(p.task.History, message)
	if message.Role == sdk.MessageRoleUser {
		return nil
	}
	status := sdk.TaskStatus{State: p.task.Status.State, Message: message, Timestamp: stamp(m.At)}
	if p.asks() {
		status = p.task.Status // what it asks is still to be seen
	}
	return p.setStatus(status)
}

// artifact keeps a part of what a run gives, and tells of it.
func (p *taskProjection) artifact(ctx context.Context, a api.ArtifactEvent) ([]sdk.Event, error) {
	parts, err := p.files.parts(ctx, a.ID, a.Parts)
	if err != nil {
		return nil, err
	}
	made := &sdk.Artifact{ID: sdk.ArtifactID(a.ID), Name: a.Name, Parts: parts}
	return []sdk.Event{p.keep(made, a.Append, a.Last)}, nil
}

// keep adds an artifact to the task, or its parts to the one of the same id.
func (p *taskProjection) keep(a *sdk.Artifact, more, last bool) sdk.Event {
	told := &sdk.TaskArtifactUpdateEvent{
		TaskID: p.task.ID, ContextID: p.task.ContextID, Artifact: a, Append: more,
		LastChunk: last,
	}
	for i, known := range p.task.Artifacts {
		if known.ID != a.ID {
			continue
		}
		whole := *a
		if more {
			whole.Parts = append(append(sdk.ContentParts{}, known.Parts...), a.Parts...)
		}
		p.task.Artifacts[i] = &whole
		return told
	}
	told.Append = false
	p.task.Artifacts = append(p.task.Artifacts, a)
	return told
}

// end gives the task what its run gave, and its last status.
func (p *taskProjection) end(ctx context.Context, record api.Record) ([]sdk.Event, error) {
	p.record = record
	if err := p.call.hold(ctx, p.call.sizeOf(record.Output)); err != nil {
		return nil, err
	}
	var told []sdk.Event
	artifacts, err := p.results(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range artifacts {
		told = append(told, p.keep(a, false, true))
	}
	p.ended = true
	if p.seq == 0 {
		p.seq = math.MaxInt64
	}
	return append(told, p.setStatus(endOf(record))...), nil
}

// results are the artifacts that a run has at its end.
func (p *taskProjection) results(ctx context.Context) ([]*sdk.Artifact, error) {
	var all []*sdk.Artifact
	if output := p.output(); output != nil {
		all = append(all, output)
	}
	for _, f := range p.record.Files {
		part, err := p.files.file(ctx, source{"", f.Name}, f.SizeBytes, httpwire.TypeOfFile(f.Name))
		if err != nil {
			return nil, err
		}
		all = append(all,
			&sdk.Artifact{ID: sdk.ArtifactID("file:" + f.Name), Name: f.Name, Parts: sdk.ContentParts{part}})
	}
	if p.record.Changes == nil {
		return all, nil
	}
	part, err := p.files.patch(ctx)
	if err != nil || part == nil {
		return all, err
	}
	return append(all, &sdk.Artifact{ID: "patch", Name: patchName, Parts: sdk.ContentParts{part}}), nil
}

// output is the artifact of a run's output: its text, and all of it as data.
func (p *taskProjection) output() *sdk.Artifact {
	value := p.call.value(p.record.Output)
	if value == nil {
		return nil
	}
	var parts sdk.ContentParts
	var text string
	if fields, err := httpwire.FieldsOf(p.record.Output); err == nil && httpwire.Take(fields, "text", &text) == nil &&
		text != "" {
		parts = append(parts, &sdk.Part{Content: sdk.Text(text), MediaType: typeText})
	}
	parts = append(parts, &sdk.Part{Content: sdk.Data{Value: value}, MediaType: httpwire.TypeJSON})
	return &sdk.Artifact{ID: "output", Name: "output", Parts: parts}
}

// follow yields the changes of a task until its end.
func (p *taskProjection) follow(ctx context.Context, yield func(sdk.Event, error) bool) error {
	for event, err := range p.tasks.svc.Events(ctx, p.record.ID, p.seq) {
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		told, err := p.apply(ctx, event)
		if err != nil {
			return err
		}
		for i, one := range told {
			p.call.sends(i == len(told)-1)
			if !yield(one, nil) {
				return errLeft
			}
		}
		p.forget()
	}
	return nil
}

// forget lets go of what was told, as far as it isn't being sent.
func (p *taskProjection) forget() {
	p.task.History = nil
	for i, a := range p.task.Artifacts {
		p.task.Artifacts[i] = &sdk.Artifact{ID: a.ID}
	}
	p.call.drop()
}

// eventID is the id of a message that an event is told with: the same for every subscriber.
func eventID(record api.Record, seq int64) string {
	return record.ID + "-" + strconv.FormatInt(seq, 10)
}

// passUntil has the events before one of a number change the task.
func (p *taskProjection) passUntil(ctx context.Context, seq int64) error {
	if p.seq == seq-1 {
		return nil
	}
	for earlier, err := range p.tasks.svc.Past(ctx, p.record.ID, p.seq) {
		if err != nil {
			return err
		}
		if earlier.Seq >= seq {
			break
		}
		if err := p.pass(ctx, earlier); err != nil {
			return err
		}
	}
	return nil
}

// pass has an event change the task as far as later ones are told by it: of an artifact that it is
// there, so that its files needn't be read.
func (p *taskProjection) pass(ctx context.Context, event api.Event) error {
	if event.Type != api.EventArtifact {
		_, err := p.apply(ctx, event)
		return err
	}
	data, err := event.Decode()
	if err == nil {
		p.seq = event.Seq
		p.keep(&sdk.Artifact{ID: sdk.ArtifactID(data.(api.ArtifactEvent).ID)}, false, false)
	}
	return err
}
