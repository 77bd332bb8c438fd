package orchestrator

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Bounds of an answer, in bytes.
const (
	maxAnswerBy   = 200
	maxAnswerNote = 4 << 10
	maxAnswerForm = 1 << 20
)

// checkedAnswer returns what is stored of an answer. The same answer gives the same bytes. The
// error is an Input fault.
func checkedAnswer(q store.Question, answer api.Answer) ([]byte, error) {
	var known []string
	if err := json.Unmarshal(q.Answers, &known); err != nil {
		return nil, undecodable(err)
	}
	if !slices.Contains(known, answer.Action) {
		return nil, fault.New(fault.Input, "the question has no answer %s", fault.Quote(answer.Action)).
			WithHint("its answers are %s", strings.Join(known, ", "))
	}
	schema := q.Form
	if q.Kind != "" && answer.Action == handoff.Reject {
		schema = nil // who says no fills in nothing
	}
	form, err := checkedForm(schema, answer.Form)
	if err != nil {
		return nil, err
	}
	return json.Marshal(api.Answer{
		Action: answer.Action, Form: form, By: run.Bounded(answer.By, maxAnswerBy),
		Note: run.Bounded(answer.Note, maxAnswerNote),
	})
}

// checkedForm holds what was filled in against the question's schema, and returns it with its
// fields sorted.
func checkedForm(schema, form []byte) (json.RawMessage, error) {
	if schema == nil && len(form) == 0 {
		return nil, nil
	}
	if schema == nil {
		return nil, fault.New(fault.Input, "the question has nothing to fill in").WithHint("leave form out")
	}
	payload, err := contract.Decode(orEmpty(form), maxAnswerForm)
	if err != nil {
		return nil, err
	}
	compiled, findings := contract.Compile(schema)
	if compiled == nil {
		return nil, fault.New(fault.Internal, "the form of the question can't be read").WithFindings(findings)
	}
	if findings := compiled.Validate(payload); len(findings) > 0 {
		return nil, fault.New(fault.Input, "what is filled in breaks the form of the question").
			WithHint("GET /v1/questions shows the form").WithFindings(findings)
	}
	object, err := decodeObject(payload.JSON())
	if err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// decodeObject reads an object that a program or a person gave: whole numbers are int64, and
// nothing in it is taken for a file.
func decodeObject(raw json.RawMessage) (map[string]any, error) {
	payload, err := contract.Decode(raw, int64(max(len(raw), 1)))
	if err != nil {
		return nil, err
	}
	value, err := flow.Values(payload.Values())
	object, _ := value.(map[string]any)
	return object, err
}
