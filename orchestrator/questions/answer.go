package questions

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Answer stores the answer to a question, and then has its run go on. The first answer counts:
// the same again changes nothing, another one is a Conflict fault.
func (g *Registry) Answer(ctx context.Context, id string, answer api.Answer) error {
	return g.AnswerOnce(ctx, id, answer, run.Once{})
}

// AnswerOnce is Answer with the key that the answer has in its run.
func (g *Registry) AnswerOnce(ctx context.Context, id string, answer api.Answer, once run.Once) error {
	if err := g.opts.Admits(ctx); err != nil {
		return err
	}
	row, err := g.row(ctx, id)
	if err != nil {
		return err
	}
	if err := g.approves(ctx, row); err != nil {
		return err
	}
	raw, err := checkedAnswer(row, answer)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	by := access.ClientOf(ctx)
	event := api.QuestionEvent{
		ID: id, Address: row.Address, State: api.QuestionAnswered, Action: answer.Action, Token: by,
	}
	key := store.Key{Value: once.Key, Fingerprint: once.Fingerprint}
	audited := store.Audit(ctx, store.Audited{
		Team: row.Team, Verb: "answer", Noun: "question", Object: id, Detail: answer.Action,
	})
	if err := g.opts.Questions.Answer(audited, key, id, raw, by, now, stored(now, event)); err != nil {
		return err
	}
	g.wake(id)
	g.opts.News(row.Run)
	return nil
}

// answerOf reads the answer of a question. The error is a fault.
func answerOf(row store.Question) (run.Answer, error) {
	var told api.Answer
	if err := json.Unmarshal(row.Answer, &told); err != nil {
		return run.Answer{}, run.Corrupt(err)
	}
	answer := run.Answer{Action: told.Action, By: told.By, Note: told.Note, At: row.AnsweredAt}
	if told.Form == nil {
		return answer, nil
	}
	form, err := run.DecodeObject(told.Form)
	answer.Form = form
	return answer, err
}

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
		return nil, run.Corrupt(err)
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
	if len(form) == 0 {
		form = []byte("{}")
	}
	payload, err := contract.Decode(form, maxAnswerForm)
	if err != nil {
		return nil, err
	}
	compiled, findings := contract.Compile(schema)
	if compiled == nil {
		return nil, fault.New(fault.Internal, "the form of the question can't be read").WithFindings(findings)
	}
	if findings := compiled.Validate(payload); len(findings) > 0 {
		return nil, fault.New(fault.Input, "what is filled in breaks the form of the question").
			WithHint("`aod questions` shows the form").WithFindings(findings)
	}
	object, err := run.DecodeObject(payload.JSON())
	if err != nil {
		return nil, err
	}
	return json.Marshal(object)
}
