package a2apeer

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// State is how a task stands.
type State string

// The states of a task.
const (
	Submitted     State = "submitted"
	Working       State = "working"
	InputRequired State = "input-required"
	AuthRequired  State = "auth-required"
	Completed     State = "completed"
	Failed        State = "failed"
	Canceled      State = "canceled"
	Rejected      State = "rejected"
)

var states = map[a2a.TaskState]State{
	a2a.TaskStateSubmitted: Submitted, a2a.TaskStateWorking: Working, a2a.TaskStateInputRequired: InputRequired,
	a2a.TaskStateAuthRequired: AuthRequired, a2a.TaskStateCompleted: Completed, a2a.TaskStateFailed: Failed,
	a2a.TaskStateCanceled: Canceled, a2a.TaskStateRejected: Rejected,
}

// Over reports whether the task has ended.
func (s State) Over() bool { return slices.Contains([]State{Completed, Failed, Canceled, Rejected}, s) }

// Asks reports whether the task waits for a message.
func (s State) Asks() bool { return s == InputRequired || s == AuthRequired }

// Task is a task of an agent's, as far as it is known. An agent that answers with a message has no task for it: that is
// one without an ID, which is completed.
type Task struct {
	ID        string
	Context   string
	State     State
	Words     string // what its status says: the text of a stranger
	Mark      string // tells one status from another, as far as the agent does
	Artifacts []Artifact

	bytes, parts int // of all artifacts
}

// Artifact is one thing that a task has made.
type Artifact struct {
	ID    string
	Name  string
	Parts []Part
}

// fold takes in what the agent tells of the task. The error is a *Violation.
func (t *Task) fold(e a2a.Event) error {
	switch e := e.(type) {
	case *a2a.Task:
		if e != nil {
			return t.replace(e)
		}
	case *a2a.Message:
		if e != nil {
			return t.say(e)
		}
	case *a2a.TaskStatusUpdateEvent:
		if e != nil {
			return t.turn(e)
		}
	case *a2a.TaskArtifactUpdateEvent:
		if e != nil && e.Artifact != nil {
			return t.grow(e)
		}
	}
	return broken(RuleAnswer, "an event is none of the protocol")
}

// belongs takes the ids of a task that wasn't known, or checks that they are those of this one.
func (t *Task) belongs(id a2a.TaskID, context string) error {
	if !isID(string(id)) || len(context) > maxID {
		return broken(RuleTask, "an id of a task or a context is empty, longer than %d bytes, or not one to be sent on",
			maxID)
	}
	if t.ID != "" && t.ID != string(id) {
		return broken(RuleTask, "it speaks of another task than it was asked about")
	}
	t.ID = string(id)
	if context != "" {
		t.Context = context
	}
	return nil
}

// isID reports whether a text can be an id of a task: it becomes a part of paths.
func isID(id string) bool {
	return id != "" && id != "." && id != ".." && len(id) <= maxID &&
		!strings.ContainsFunc(id,
			func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/\?#%`, r) })
}

// replace takes over a task as the agent has it.
func (t *Task) replace(e *a2a.Task) error {
	if err := t.belongs(e.ID, e.ContextID); err != nil {
		return err
	}
	if len(e.Artifacts) > MaxArtifacts {
		return broken(RuleSize, "a task has more than %d artifacts", MaxArtifacts)
	}
	t.Artifacts, t.bytes, t.parts = nil, 0, 0
	for _, a := range e.Artifacts {
		if a == nil {
			return broken(RuleAnswer, "an artifact is null")
		}
		if err := t.add(Artifact{ID: shown(string(a.ID)), Name: shown(a.Name)}, a.Parts); err != nil {
			return err
		}
	}
	return t.stand(e.Status)
}

// say takes over a message that the agent gives in place of a task, or with one.
func (t *Task) say(e *a2a.Message) error {
	if t.ID != "" {
		t.Words = wordsOf(e)
		return nil
	}
	t.State, t.Artifacts, t.bytes, t.parts = Completed, nil, 0, 0
	return t.add(Artifact{}, e.Parts)
}

// turn takes over a change of the status.
func (t *Task) turn(e *a2a.TaskStatusUpdateEvent) error {
	if err := t.belongs(e.TaskID, e.ContextID); err != nil {
		return err
	}
	return t.stand(e.Status)
}

// stand takes over a status.
func (t *Task) stand(s a2a.TaskStatus) error {
	state, known := states[s.State]
	if !known {
		return broken(RuleState, "a task is in a state that the protocol doesn't have")
	}
	t.State, t.Words, t.Mark = state, wordsOf(s.Message), string(state)
	if s.Message != nil {
		t.Mark += " " + shown(s.Message.ID)
	}
	if s.Timestamp != nil {
		t.Mark += " " + s.Timestamp.UTC().Format(time.RFC3339Nano)
	}
	return nil
}

// grow takes over a new artifact, or a piece of one.
func (t *Task) grow(e *a2a.TaskArtifactUpdateEvent) error {
	if err := t.belongs(e.TaskID, e.ContextID); err != nil {
		return err
	}
	id := shown(string(e.Artifact.ID))
	at := slices.IndexFunc(t.Artifacts, func(a Artifact) bool { return a.ID == id })
	switch {
	case at >= 0 && e.Append:
		return t.extend(&t.Artifacts[at], e.Artifact.Parts)
	case at >= 0:
		t.forget(t.Artifacts[at])
		t.Artifacts = slices.Delete(t.Artifacts, at, at+1)
	case len(t.Artifacts) == MaxArtifacts:
		return broken(RuleSize, "a task has more than %d artifacts", MaxArtifacts)
	}
	return t.add(Artifact{ID: id, Name: shown(e.Artifact.Name)}, e.Artifact.Parts)
}

// add takes an artifact with its parts into the task.
func (t *Task) add(a Artifact, parts a2a.ContentParts) error {
	if err := t.extend(&a, parts); err != nil {
		return err
	}
	t.Artifacts = append(t.Artifacts, a)
	return nil
}

// extend adds parts to an artifact.
func (t *Task) extend(a *Artifact, parts a2a.ContentParts) error {
	for _, w := range parts {
		p, err := partOf(w)
		if err != nil {
			return err
		}
		if t.bytes += p.size(); t.bytes > mostBytes {
			return broken(RuleSize, "what a task has made is more than %d bytes", mostBytes)
		}
		if t.parts++; t.parts > maxParts {
			return broken(RuleSize, "what a task has made has more than %d parts", maxParts)
		}
		a.Parts = append(a.Parts, p)
	}
	return nil
}

// forget takes an artifact out of the counts.
func (t *Task) forget(a Artifact) {
	for _, p := range a.Parts {
		t.bytes -= p.size()
		t.parts--
	}
}

// partOf reads a part. The error is a *Violation.
func partOf(w *a2a.Part) (p Part, err error) {
	if w == nil {
		return p, broken(RuleAnswer, "a part is null")
	}
	p = Part{Name: w.Filename, Media: shown(w.MediaType)}
	p.Field, _ = w.Metadata[fieldKey].(string)
	if len(p.Name) > maxWords || len(p.Field) > maxWords {
		return p, broken(RuleSize, "the name of a part is longer than %d bytes", maxWords)
	}
	switch content := w.Content.(type) {
	case a2a.Text:
		text := string(content)
		p.Text = &text
	case a2a.Data:
		if p.Data, err = json.Marshal(content.Value); err != nil {
			return p, broken(RuleAnswer, "the data of a part isn't JSON")
		}
	case a2a.Raw:
		p.Raw = content
		if p.Raw == nil {
			p.Raw = []byte{}
		}
	case a2a.URL:
		if p.URL = string(content); len(p.URL) > maxWords {
			return p, broken(RuleSize, "the address of a file is longer than %d bytes", maxWords)
		}
	default:
		return p, broken(RuleAnswer, "a part has no content of the protocol")
	}
	return p, nil
}

// wordsOf returns the texts of a message in one line, bounded.
func wordsOf(m *a2a.Message) string {
	if m == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range m.Parts {
		if p == nil || p.Text() == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if b.WriteString(p.Text()); b.Len() > maxWords {
			break
		}
	}
	return shown(b.String())
}
