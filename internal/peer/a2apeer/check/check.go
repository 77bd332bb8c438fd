// Package check holds an agent elsewhere against the A2A protocol.
//
// Agent makes all calls that the rules need (gather), then judges what came (the table rules). The bounds and the
// checks of answers are those that the client goes by.
//
// No report holds a value from a card, an answer or a secret: it names members, rules, states and status codes, and the
// caller's own address.
//
// It must not know runs, units, engines, or a terminal.
package check

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/checklist"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
)

// DefaultTimeout bounds how long a task of a check may take.
const DefaultTimeout = time.Minute

// hello is what the agent is told where no input is given.
const hello = "Hello"

// lookTime is how long the check waits before it looks at a task again.
const lookTime = 200 * time.Millisecond

// settleTime is how long an agent may take to let go of a task after its end was seen. Servers store the end first, and
// those of the protocol's Go SDK answer a message with an internal error until the execution is gone as well.
const settleTime = 2 * time.Second

// Options configure a check of an agent.
type Options struct {
	Call a2apeer.Options // how the agent is asked, and where it is
	// Inputs are what the agent is sent: the text of message, prompt, query or text, and the other members as data.
	// None are a greeting.
	Inputs  json.RawMessage
	Timeout time.Duration // for each task; 0 is DefaultTimeout
}

// Agent asks an agent and judges what it answers. Its task runs up to three times. The error is an Input fault for an
// invalid address, token or input, or the end of ctx. An agent that can't be reached is a failed rule.
func Agent(ctx context.Context, opts Options) (checklist.Report, error) {
	client, err := a2apeer.New(opts.Call)
	if err != nil {
		return checklist.Report{}, err
	}
	e := &examiner{client: client, timeout: opts.Timeout}
	if e.timeout <= 0 {
		e.timeout = DefaultTimeout
	}
	if e.parts, err = partsOf(opts.Inputs); err != nil {
		return checklist.Report{}, err
	}
	found := e.gather(ctx)
	if ctx.Err() != nil {
		return checklist.Report{}, context.Cause(ctx)
	}
	return checklist.Report{Target: opts.Call.URL, Checks: checklist.Judge(rules(), found)}, nil
}

// partsOf returns the parts of the check's messages.
func partsOf(inputs json.RawMessage) ([]a2apeer.Part, error) {
	if len(inputs) == 0 {
		return []a2apeer.Part{a2apeer.TextPart(hello)}, nil
	}
	var values map[string]any
	if err := json.Unmarshal(inputs, &values); err != nil {
		return nil, fault.New(fault.Input, "the inputs aren't a JSON object")
	}
	return a2apeer.PartsOf(values, true)
}

// examiner makes the calls of a check.
type examiner struct {
	client  *a2apeer.Client
	agent   *a2apeer.Agent
	parts   []a2apeer.Part
	timeout time.Duration
}

// evidence is everything an agent did during a check.
type evidence struct {
	card    a2apeer.Card
	cardErr error
	at      a2apeer.Interface // that answered

	notJSON, noMethod envelope // answers of JSON-RPC
	unknown           error    // of a look at a task that isn't there
	cancelUnknown     error    // of its end

	sent    told
	looked  told  // the same task, looked at once more
	ended   error // of an attempt to end it when it was over
	after   error // of a message to it then
	stream  told
	resub   error // of a subscription when it was over
	stopped told  // a task that was to be ended
}

// told is a task, or why there is none.
type told struct {
	task a2apeer.Task
	err  error
	made bool // the call was made
}

// envelope is an answer of JSON-RPC to something that is wrong.
type envelope struct {
	made   bool
	status int
	code   int // of its error; 0: there is none
	err    error
}

// gather makes all calls.
func (e *examiner) gather(ctx context.Context) *evidence {
	found := &evidence{}
	if found.card, found.cardErr = e.client.Card(ctx); found.cardErr != nil {
		return found
	}
	e.find(ctx, found)
	if found.sent.err != nil {
		return found
	}
	e.errors(ctx, found)
	if found.sent.task = e.await(ctx, found.sent.task); found.sent.task.ID != "" && found.sent.task.State.Over() {
		e.afterwards(ctx, found)
	}
	if found.card.Streams {
		e.stream(ctx, found)
	}
	e.stop(ctx, found)
	return found
}

// find sends a message to the best interface that the agent speaks.
func (e *examiner) find(ctx context.Context, found *evidence) {
	for _, at := range found.card.Interfaces {
		agent, err := e.client.At(at)
		if err != nil {
			found.sent = told{err: err, made: true}
			return
		}
		e.agent, found.at = agent, at
		found.sent = e.send(ctx)
		if !a2apeer.IsUnspoken(found.sent.err) {
			return
		}
	}
}

func (e *examiner) message() a2apeer.Message {
	return a2apeer.Message{ID: "aod-check-" + rand.Text(), Parts: e.parts}
}

func (e *examiner) send(ctx context.Context) told {
	limited, stop := context.WithTimeout(ctx, e.timeout)
	defer stop()
	task, err := e.agent.Send(limited, e.message())
	return told{task: task, err: err, made: true}
}

// await looks at a task until it is over or asks, or its time is.
func (e *examiner) await(ctx context.Context, task a2apeer.Task) a2apeer.Task {
	limited, stop := context.WithTimeout(ctx, e.timeout)
	defer stop()
	for task.ID != "" && !task.State.Over() && !task.State.Asks() && pause.For(limited, lookTime) == nil {
		if newer, err := e.agent.Get(limited, task.ID); err == nil {
			task = newer
		}
	}
	return task
}

// errors asks for what the agent has to refuse.
func (e *examiner) errors(ctx context.Context, found *evidence) {
	nobody := "aod-check-" + rand.Text()
	_, found.unknown = e.agent.Get(ctx, nobody)
	_, found.cancelUnknown = e.agent.Cancel(ctx, nobody)
	if found.at.Binding != a2apeer.JSONRPC {
		return
	}
	found.notJSON = e.post(ctx, found.at, `{"jsonrpc":`)
	found.noMethod = e.post(ctx, found.at, `{"jsonrpc":"2.0","id":"aod-check","method":"AodCheck","params":{}}`)
}

// post sends a text that isn't a request, and reads the error that comes back.
func (e *examiner) post(ctx context.Context, at a2apeer.Interface, text string) envelope {
	got := envelope{made: true}
	var raw []byte
	if got.status, raw, got.err = e.client.Post(ctx, at, []byte(text)); got.err != nil {
		return got
	}
	var answer struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(raw, &answer) // an answer without a code is judged so
	got.code = answer.Error.Code
	return got
}

// afterwards asks of a task that is over what can't be done with it.
func (e *examiner) afterwards(ctx context.Context, found *evidence) {
	id := found.sent.task.ID
	task, err := e.agent.Get(ctx, id)
	found.looked = told{task: task, err: err, made: true}
	found.ended = e.settled(ctx, func() error {
		_, err := e.agent.Cancel(ctx, id)
		return err
	})
	found.after = e.settled(ctx, func() error {
		late := e.message()
		late.Task, late.Context = id, found.sent.task.Context
		_, err := e.agent.Send(ctx, late)
		return err
	})
	if found.card.Streams {
		_, found.resub = e.agent.Subscribe(ctx, a2apeer.Task{ID: id}, func(a2apeer.Task) error { return nil })
	}
}

// settled asks something of a task that is over, and asks again for a while if the agent fails instead of refusing it.
func (e *examiner) settled(ctx context.Context, ask func() error) error {
	limited, stop := context.WithTimeout(ctx, min(e.timeout, settleTime))
	defer stop()
	for {
		err := ask()
		if err == nil || fault.KindOf(err) != fault.Internal || pause.For(limited, lookTime) != nil {
			return err
		}
	}
}

// stream has a task told of as it goes on.
func (e *examiner) stream(ctx context.Context, found *evidence) {
	limited, stop := context.WithTimeout(ctx, e.timeout)
	defer stop()
	task, err := e.agent.Stream(limited, e.message(), func(a2apeer.Task) error { return nil })
	found.stream = told{task: task, err: err, made: true}
}

// stop begins a task and ends it.
func (e *examiner) stop(ctx context.Context, found *evidence) {
	begun := e.send(ctx)
	if begun.err != nil || begun.task.ID == "" || begun.task.State.Over() {
		return
	}
	task, err := e.agent.Cancel(ctx, begun.task.ID)
	found.stopped = told{task: task, err: err, made: true}
	if err == nil || errors.As(err, new(*a2apeer.Violation)) {
		return
	}
	if ended := e.await(ctx, begun.task); ended.State.Over() && ended.State != a2apeer.Canceled {
		found.stopped.task = ended
	}
}

// why says what an error is, without a word of the agent's.
func why(err error) string {
	var broken *a2apeer.Violation
	if errors.As(err, &broken) {
		return fmt.Sprintf("%s (rule %s)", broken.Fault.Msg, broken.Rule)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it took too long"
	}
	public := fault.Public(err)
	if public.Err != nil {
		return public.Msg + ": " + public.Err.Error()
	}
	return public.Msg
}
