package a2a

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// unitKey is the metadata of a message that says which unit the agent of all units is to ask.
const unitKey = "unit"

// messages takes in what clients send to agents.
type messages struct {
	svc        Service
	push       Push // nil: there is none
	tasks      tasks
	rates      *rates
	deliveries *deliveries
	logger     *slog.Logger
}

// send has a message become a run, the next turn of a session, the answer to a question, or
// something that a run is told.
func (x *messages) send(ctx context.Context, c *call, req *sdk.SendMessageRequest) (api.Record, error) {
	if err := x.check(req); err != nil {
		return api.Record{}, err
	}
	if req.Message.TaskID == "" {
		return x.begin(ctx, c, req.Message, pushesOf(req))
	}
	record, err := x.reply(ctx, c, req.Message)
	for _, push := range pushesOf(req) {
		if err == nil {
			_, err = x.push.CreatePush(ctx, record.ID, push)
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

func (x *messages) check(req *sdk.SendMessageRequest) error {
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
	if req.Config.PushConfig != nil && x.push == nil {
		return refuse(noPush, noPushText)
	}
	return checkHistory(req.Config.HistoryLength)
}

// begin makes a run of a message.
func (x *messages) begin(
	ctx context.Context, c *call, m *sdk.Message, pushes []api.PushConfig,
) (record api.Record, err error) {
	agent, err := x.agentOf(ctx, c, m)
	if err != nil {
		return api.Record{}, err
	}
	if err := x.rates.take(agent.Name); err != nil {
		return api.Record{}, err
	}
	decoded, err := decodeInput(agent, m)
	if err != nil {
		return api.Record{}, err
	}
	sub := spool.Submission{
		Unit: agent.Name, Context: m.ContextID, Input: decoded.input, Message: &decoded.message, TraceParent: c.trace,
	}
	if sub.Resend, err = resend(agent.Name, m); err != nil {
		return api.Record{}, err
	}
	begins, err := x.converse(ctx, agent, &sub)
	if err != nil {
		return api.Record{}, err
	}
	x.deliveries.await(ctx, sub.Resend)
	if sub.Files, err = x.receive(decoded.files); err != nil {
		return api.Record{}, err
	}
	if begins {
		record, err = x.submitFirst(ctx, sub, pushes)
	} else {
		record, err = x.submit(ctx, sub, pushes)
	}
	if err != nil {
		return api.Record{}, err
	}
	c.tells(ctx, record.ID, sub.Resend)
	x.logger.InfoContext(ctx, "task begun", "run", record.ID, "unit", agent.Name)
	return record, nil
}

// receive returns the files of a message as those of a submission; nil: there are none. They are as large as the
// request was allowed to be.
func (x *messages) receive(files []inputFile) (*spool.Spool, error) {
	if len(files) == 0 {
		return nil, nil
	}
	received, err := x.svc.NewSpool()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := received.Add("", f.name, bytes.NewReader(f.content), int64(len(f.content))); err != nil {
			return nil, errors.Join(err, received.Remove())
		}
	}
	return received, nil
}

// submitFirst makes a run that is the first turn of a new session. The session is closed again if it isn't.
func (x *messages) submitFirst(
	ctx context.Context, sub spool.Submission, pushes []api.PushConfig,
) (record api.Record, err error) {
	session, err := x.svc.CreateSession(ctx, sub.Unit, nil)
	if err != nil {
		return api.Record{}, errors.Join(err, sub.Files.Remove())
	}
	sub.Session, sub.Context = session.ID, session.ID
	record, err = x.submit(ctx, sub, pushes)
	if err != nil || record.Session != session.ID {
		_, closed := x.svc.CloseSession(context.WithoutCancel(ctx), session.ID,
			"its first message made no turn of it")
		err = errors.Join(err, closed)
	}
	return record, err
}

// submit makes a run of which receivers are told.
func (x *messages) submit(
	ctx context.Context, sub spool.Submission, pushes []api.PushConfig,
) (record api.Record, err error) {
	asked := ctx
	if len(pushes) > 0 {
		asked = x.push.WithTargets(ctx, pushes)
	}
	record, joined, err := x.svc.Submit(asked, sub) // it owns the files from here
	for _, push := range pushes {
		if err == nil && joined { // what it was accepted with may be another's
			_, err = x.push.CreatePush(ctx, record.ID, push)
		}
	}
	return record, err
}

// agentOf returns the agent that a message is for.
func (x *messages) agentOf(ctx context.Context, c *call, m *sdk.Message) (Agent, error) {
	name := c.unit
	if name == "" {
		name, _ = m.Metadata[unitKey].(string)
	}
	if name == "" {
		return Agent{}, refuse(badParams,
			"this agent stands for all units: say in the message's metadata `unit` which one is meant")
	}
	if api.CheckUnitName(name) != nil {
		return Agent{}, refuse(noAgent, noAgentText)
	}
	if c.unit == "" {
		if err := x.tasks.admits(ctx, name); err != nil {
			return Agent{}, err
		}
	}
	agent, err := x.svc.Agent(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return agent, refuse(noAgent, noAgentText)
	}
	return agent, err
}

// converse finds the context of a new task: of an interactive agent its session, which may be one that begins with it.
func (x *messages) converse(ctx context.Context, agent Agent, sub *spool.Submission) (begins bool, err error) {
	switch {
	case agent.Sessions && sub.Context != "":
		session, err := x.svc.Session(ctx, sub.Context)
		if fault.Is(err, fault.NotFound) || err == nil && session.Unit != agent.Name {
			return false, refuse(badParams,
				"the context isn't a session of this agent: leave contextId out, and the answer has that of a new one")
		}
		sub.Session = sub.Context
		return false, err
	case agent.Sessions:
		return true, nil
	case sub.Context == "":
		sub.Context = sdk.NewContextID()
	}
	return false, nil
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
func (x *messages) reply(ctx context.Context, c *call, m *sdk.Message) (api.Record, error) {
	record, err := x.tasks.record(ctx, c, m.TaskID)
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
	x.deliveries.await(ctx, digest)
	told, err := x.svc.WasTold(ctx, record.ID, digest)
	if err == nil && !told {
		err = x.tell(ctx, record, digest, m)
	}
	if err != nil {
		return record, err
	}
	c.tells(ctx, record.ID, digest)
	return x.svc.Get(ctx, record.ID)
}

// tell tells a run that goes on what it wasn't told before.
func (x *messages) tell(ctx context.Context, record api.Record, digest string, m *sdk.Message) error {
	if record.Outcome != "" {
		return refuse(notDone, "the task has ended: a message without taskId begins another one")
	}
	if err := x.rates.take(record.Unit); err != nil {
		return err
	}
	if record.Question != nil {
		return x.answer(ctx, record, digest, m)
	}
	return x.say(ctx, record, digest, m)
}

// say delivers a message to a run that goes on.
func (x *messages) say(ctx context.Context, record api.Record, digest string, m *sdk.Message) error {
	input, err := newMessageInput(nil, m)
	if err == nil {
		err = input.addAll(m.Parts)
	}
	if err != nil {
		return err
	}
	return x.svc.SayResent(ctx, record.ID, digest, input.message)
}

// answer answers a question with a message.
func (x *messages) answer(ctx context.Context, record api.Record, digest string, m *sdk.Message) error {
	q, err := x.svc.Question(ctx, record.Question.ID)
	if err != nil {
		return err
	}
	answer, err := answerOf(q, m)
	if err != nil {
		return err
	}
	return x.svc.AnswerResent(ctx, record.ID, digest, q.ID, answer)
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

// rates bounds the messages that units get in a minute.
type rates struct {
	opts Options
	all  httpwire.Rates
}

// take takes a message of a unit, or refuses it.
func (r *rates) take(unit string) error {
	of, own := r.opts.Rates[unit]
	if !own {
		of.Minute = r.opts.Rate
	}
	return r.all.Take(unit, of, "the unit gets too many messages")
}
