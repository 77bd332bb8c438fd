package capsule

import (
	"encoding/json"

	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// rehearsalJSON is what a case of a flow gives in place of units and people. The schema has
// checked it: what has another form is left out here.
type rehearsalJSON struct {
	Nodes   map[string]oneOrMore[playedJSON]   `json:"nodes"`
	Answers map[string]oneOrMore[answeredJSON] `json:"answers"`
}

type playedJSON struct {
	Output json.RawMessage `json:"output"`
	Error  *flow.Failure   `json:"error"`
}

type answeredJSON struct {
	Action string
	Form   map[string]any
}

// UnmarshalJSON reads an action alone, or an object with a form.
func (a *answeredJSON) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &a.Action) == nil {
		return nil
	}
	var whole struct {
		Action string          `json:"action"`
		Form   json.RawMessage `json:"form"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		return err
	}
	a.Action, a.Form = whole.Action, object(whole.Form)
	return nil
}

// oneOrMore is a list that may stand as its only item.
type oneOrMore[T any] []T

// UnmarshalJSON reads a list or one item.
func (l *oneOrMore[T]) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, (*[]T)(l)) == nil {
		return nil
	}
	var only T
	if err := json.Unmarshal(raw, &only); err != nil {
		return err
	}
	*l = []T{only}
	return nil
}

func (r rehearsalJSON) rehearsal() *flow.Rehearsal {
	if len(r.Nodes) == 0 && len(r.Answers) == 0 {
		return nil
	}
	made := &flow.Rehearsal{Nodes: map[string][]flow.Played{}, Answers: map[string][]flow.Answer{}}
	for name, all := range r.Nodes {
		for _, p := range all {
			made.Nodes[name] = append(made.Nodes[name], flow.Played{Output: object(p.Output), Failure: p.Error})
		}
	}
	for name, all := range r.Answers {
		for _, a := range all {
			made.Answers[name] = append(made.Answers[name], flow.Answer{Action: a.Action, Form: a.Form})
		}
	}
	return made
}

// object reads an object as a state has it; nil where it is none.
func object(raw json.RawMessage) map[string]any {
	v, err := strictjson.Decode(raw)
	if err != nil {
		return nil
	}
	v, _ = flow.Values(v) // else it is nil
	o, _ := v.(map[string]any)
	return o
}
