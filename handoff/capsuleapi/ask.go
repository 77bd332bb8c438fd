package capsuleapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// Bounds of a question, in bytes but for maxOptions.
const (
	maxQuestion = 8 << 10
	maxSchema   = 32 << 10
	maxOptions  = 32
	maxOption   = 200
)

// How long a question is open.
const (
	questionTime    = 10 * time.Minute
	maxQuestionTime = 7 * 24 * time.Hour
)

// textForm is the form of an answer that is a text.
const textForm = `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],` +
	`"additionalProperties":false}`

// askAnswer is the answer to POST /ask.
type askAnswer struct {
	Answer any    `json:"answer,omitempty"`
	Option string `json:"option,omitempty"`
	By     string `json:"by,omitempty"`
	Note   string `json:"note,omitempty"`
	Denied string `json:"denied,omitempty"`
}

// asking answers what a run asks people.
type asking struct {
	responder responder
	runs      handoff.Runs
	deadline  time.Time // of the run
}

// post asks people, and answers when somebody has answered.
func (a asking) post(w http.ResponseWriter, r *http.Request) error {
	asked, err := readQuestion(w, r)
	if err != nil {
		return err
	}
	q := asked.question(a.deadline, time.Now())
	if q.Key, err = httpwire.IdempotencyKey(r); err != nil {
		return err
	}
	answer, err := a.runs.Ask(r.Context(), q)
	if err != nil {
		return err
	}
	a.responder.log.InfoContext(r.Context(), "question answered", "denied", answer.Denied != "")
	return a.responder.reply(w, r, http.StatusOK, asked.answered(answer))
}

// askedFor is the body of POST /ask.
type askedFor struct {
	Text    string
	Kind    api.QuestionKind
	Options []string
	Schema  json.RawMessage
	Timeout time.Duration
}

func readQuestion(w http.ResponseWriter, r *http.Request) (asked askedFor, err error) {
	f, err := readFields(w, r, maxQuestion+maxSchema+httpwire.SmallBody)
	if err != nil {
		return asked, httpwire.AsKind(fault.BadRequest, err)
	}
	asked.Kind, asked.Timeout = api.QuestionInput, questionTime
	var timeout string
	err = errors.Join(f.Only("text", "kind", "options", "schema", "timeout"), httpwire.Take(f, "text", &asked.Text),
		httpwire.Take(f, "kind", &asked.Kind), httpwire.Take(f, "options", &asked.Options),
		httpwire.Take(f, "timeout", &timeout))
	if err != nil {
		return asked, err
	}
	if schema := f["schema"]; string(schema) != "null" {
		asked.Schema = schema
	}
	if timeout != "" {
		if asked.Timeout, err = httpwire.Timeout(timeout); err != nil {
			return asked, err
		}
	}
	return asked, asked.check()
}

// check returns a fault for a question that nobody could answer.
func (q askedFor) check() error {
	switch {
	case q.Text == "" || len(q.Text) > maxQuestion:
		return fault.New(fault.Input, "the text of the question has %d bytes", len(q.Text)).
			WithHint("write 1 to %d", maxQuestion)
	case !slices.Contains([]api.QuestionKind{api.QuestionInput, api.QuestionApproval, api.QuestionAuth}, q.Kind):
		return fault.New(fault.Input, "there is no kind of question %s", fault.Quote(string(q.Kind))).
			WithHint("kind is input, approval or auth")
	case q.Timeout > maxQuestionTime:
		return fault.New(fault.Input, "the question would be open for %v", q.Timeout).
			WithHint("a timeout is at most %v", maxQuestionTime)
	}
	if err := checkOptions(q.Options); err != nil {
		return err
	}
	return checkForm(q.Schema)
}

func checkOptions(options []string) error {
	if len(options) > maxOptions {
		return fault.New(fault.Input, "the question has %d options", len(options)).
			WithHint("give at most %d", maxOptions)
	}
	for i, option := range options {
		if option == "" || len(option) > maxOption || fault.OneLine(option) != option ||
			slices.Contains(options[:i], option) {
			return fault.New(fault.Input, "the option with number %d can't be chosen", i+1).
				WithHint("each is another line of 1 to %d bytes", maxOption)
		}
	}
	return nil
}

// checkForm returns a fault for a schema that no form can be made of.
func checkForm(schema json.RawMessage) error {
	if schema == nil {
		return nil
	}
	if len(schema) > maxSchema {
		return fault.New(fault.TooLarge, "the schema of the answer has %d bytes; %d are allowed", len(schema),
			maxSchema)
	}
	var top struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(schema, &top) != nil || top.Type != "object" {
		return fault.New(fault.Input, "the schema is none of an object").
			WithHint(`"schema" is {"type": "object", "properties": {…}}`)
	}
	if compiled, findings := contract.Compile(schema); compiled == nil {
		return fault.New(fault.Input, "the schema of the answer is not valid").WithFindings(findings)
	}
	return nil
}

// question is what people are asked, until the end of its own time or of the run's.
func (q askedFor) question(deadline, now time.Time) handoff.Question {
	asked := handoff.Question{
		Kind: q.Kind, Text: q.Text, Options: q.Options, Schema: q.Schema, Until: now.Add(q.Timeout).UTC(),
	}
	if !deadline.IsZero() && deadline.Before(asked.Until) {
		asked.Until = deadline.UTC()
	}
	switch {
	case q.Kind != api.QuestionInput && len(q.Options) == 0:
		asked.Options = []string{handoff.Approve, handoff.Reject}
	case len(q.Options) == 0:
		asked.Options = []string{handoff.Reply, handoff.Reject}
		if q.Schema == nil {
			asked.Schema = json.RawMessage(textForm)
		}
	}
	return asked
}

// answered is what the program is told.
func (q askedFor) answered(a handoff.Answer) askAnswer {
	if a.Denied == "" && a.Option == handoff.Reject && len(q.Options) == 0 {
		a.Denied = "a person said no"
	}
	told := askAnswer{By: a.By, Note: a.Note, Denied: a.Denied}
	if a.Denied != "" {
		return told
	}
	if a.Option != handoff.Reply || len(q.Options) > 0 {
		told.Option = a.Option
	}
	switch {
	case q.Schema != nil:
		told.Answer = a.Filled
	case a.Filled != nil:
		told.Answer = a.Filled["answer"] // of the textForm
	default:
		told.Answer = a.Option
	}
	return told
}
