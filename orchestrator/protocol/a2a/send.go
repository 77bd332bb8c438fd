package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// unitKey is the metadata of a message that says which unit the agent of all units is to ask.
const unitKey = "unit"

// send has a message become a run, the next turn of a session, the answer to a question, or
// something that a run is told.
func (h handler) send(ctx context.Context, c *call, req *sdk.SendMessageRequest) (api.Record, error) {
	if err := h.checkSend(req); err != nil {
		return api.Record{}, err
	}
	if req.Message.TaskID == "" {
		return h.begin(ctx, c, req.Message, pushesOf(req))
	}
	record, err := h.reply(ctx, c, req.Message)
	for _, push := range pushesOf(req) {
		if err == nil {
			_, err = h.opts.Push.CreatePush(ctx, record.ID, push)
		}
	}
	return record, err
}

// pushesOf is the push that comes with a message.
func pushesOf(req *sdk.SendMessageRequest) []api.PushConfig {
	if req.Config == nil || req.Config.PushConfig == nil {
		return nil
	}
	return []api.PushConfig{configOf(req.Config.PushConfig)}
}

func (h handler) checkSend(req *sdk.SendMessageRequest) error {
	m := req.Message
	switch {
	case m == nil:
		return refuse(badParams, "the message is missing")
	case !isID(m.ID):
		return refuse(badParams, fmt.Sprintf("messageId is missing, or not a text of at most %d bytes", maxID))
	case m.ContextID != "" && !isID(m.ContextID):
		return refuse(badParams, fmt.Sprintf("contextId is not a text of at most %d bytes", maxID))
	case m.Role != sdk.MessageRoleUser:
		return refuse(badParams, "the role of a message to an agent is that of the user")
	case len(m.Parts) == 0:
		return refuse(badParams, "the message has no parts")
	case len(m.Parts) > maxParts:
		return refuse(badParams, fmt.Sprintf("the message has more than %d parts", maxParts))
	}
	if req.Config == nil {
		return nil
	}
	if req.Config.PushConfig != nil && h.opts.Push == nil {
		return refuse(noPush, noPushText)
	}
	return checkHistory(req.Config.HistoryLength)
}

// begin makes a run of a message.
func (h handler) begin(
	ctx context.Context, c *call, m *sdk.Message, pushes []api.PushConfig,
) (record api.Record, err error) {
	agent, err := h.agentOf(ctx, c, m)
	if err != nil {
		return api.Record{}, err
	}
	if err := h.rates.take(agent.Name, time.Now()); err != nil {
		return api.Record{}, err
	}
	taken, err := h.take(agent, m)
	if err != nil {
		return api.Record{}, err
	}
	sub := Submission{
		Unit: agent.Name, Context: m.ContextID, Input: taken.input, Files: taken.files, Message: taken.message,
		TraceParent: c.trace, Pushes: pushes,
	}
	if sub.Resend, err = resend(agent.Name, m); err != nil {
		return api.Record{}, err
	}
	if err := h.converse(ctx, agent, &sub); err != nil {
		return api.Record{}, err
	}
	h.deliveries.await(ctx, sub.Resend)
	record, err = h.svc.Submit(ctx, sub)
	if err != nil {
		return api.Record{}, err
	}
	c.tells(record.ID, sub.Resend)
	h.opts.Logger.InfoContext(ctx, "task begun", "run", record.ID, "unit", agent.Name)
	return record, nil
}

// agentOf returns the agent that a message is for.
func (h handler) agentOf(ctx context.Context, c *call, m *sdk.Message) (Agent, error) {
	name := c.unit
	if name == "" {
		name, _ = m.Metadata[unitKey].(string)
	}
	if name == "" {
		return Agent{}, refuse(badParams,
			"this agent stands for all units: say in the message's metadata `unit` which one is meant")
	}
	if api.CheckUnitName(name) != nil {
		return Agent{}, refuse(noAgent, "there is no such unit")
	}
	agent, err := h.svc.Agent(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return agent, refuse(noAgent, "there is no such unit")
	}
	return agent, err
}

// converse finds the context of a new task: of an interactive agent its session.
func (h handler) converse(ctx context.Context, agent Agent, sub *Submission) error {
	switch {
	case agent.Sessions && sub.Context != "":
		session, err := h.svc.Session(ctx, sub.Context)
		if fault.Is(err, fault.NotFound) || err == nil && session.Unit != agent.Name {
			return refuse(badParams,
				"the context is no session of this agent: leave contextId out, and the answer has that of a new one")
		}
		sub.Session = sub.Context
		return err
	case agent.Sessions:
		sub.Begins = true
	case sub.Context == "":
		sub.Context = sdk.NewContextID()
	}
	return nil
}

// resend is the digest of a message and whom it is for.
func resend(unit string, m *sdk.Message) (string, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s\n", unit)
	sum.Write(raw)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// reply tells a task what a message says.
func (h handler) reply(ctx context.Context, c *call, m *sdk.Message) (api.Record, error) {
	record, err := h.record(ctx, c, m.TaskID)
	if err != nil {
		return record, err
	}
	if m.ContextID != "" && m.ContextID != contextOf(record) {
		return record, refuse(badParams, "the context is not the task's")
	}
	digest, err := resend(record.Unit, m)
	if err != nil {
		return record, err
	}
	h.deliveries.await(ctx, digest)
	told, err := h.svc.WasTold(ctx, record.ID, digest)
	if err == nil && !told {
		err = h.tell(ctx, record, digest, m)
	}
	if err != nil {
		return record, err
	}
	c.tells(record.ID, digest)
	return h.svc.Get(ctx, record.ID)
}

// tell tells a run that goes on what it wasn't told before.
func (h handler) tell(ctx context.Context, record api.Record, digest string, m *sdk.Message) error {
	if record.Outcome != "" {
		return refuse(notDone, "the task has ended: a message without taskId begins another one")
	}
	if err := h.rates.take(record.Unit, time.Now()); err != nil {
		return err
	}
	if record.Question != nil {
		return h.answer(ctx, record, digest, m)
	}
	return h.say(ctx, record, digest, m)
}

// say delivers a message to a run that goes on.
func (h handler) say(ctx context.Context, record api.Record, digest string, m *sdk.Message) error {
	said, err := newTaking(nil, m)
	if err == nil {
		err = said.all(m.Parts)
	}
	if err != nil {
		return err
	}
	return h.svc.SayResent(ctx, record.ID, digest, said.message)
}

// answer answers a question with a message.
func (h handler) answer(ctx context.Context, record api.Record, digest string, m *sdk.Message) error {
	q, err := h.svc.Question(ctx, record.Question.ID)
	if err != nil {
		return err
	}
	answer, err := answerOf(q, m)
	if err != nil {
		return err
	}
	return h.svc.AnswerResent(ctx, record.ID, digest, q.ID, answer)
}

// contextOf is the context of a run.
func contextOf(record api.Record) string {
	switch {
	case record.Session != "":
		return record.Session
	case record.Context != "":
		return record.Context
	}
	return record.ID
}

// joined joins the texts of parts.
func joined(texts []string) string { return strings.Join(texts, "\n") }
