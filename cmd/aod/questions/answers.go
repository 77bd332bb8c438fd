package questions

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runflags"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Given are the answers to what is asked here: those that were given before, and those
// of whoever sits at the terminal.
type Given struct {
	env   *cli.Env
	named map[string]string // actions by flow.NodePath

	mu    sync.Mutex // one question at a time
	plain []string   // for questions of programs, in their order; the last one stays
	lines *bufio.Reader
}

// ReadGiven reads --answer.
func ReadGiven(env *cli.Env, flags []string) *Given {
	given := &Given{env: env, named: map[string]string{}, plain: slices.Clone(flags)}
	for _, flag := range flags {
		if node, action, ok := strings.Cut(flag, "="); ok {
			given.named[node] = action
		}
	}
	return given
}

// take returns what was given for a question.
func (x *Given) take(q run.Question) (text string, ok bool) {
	if q.Kind == "" {
		text, ok = x.named[flow.NodePath(q.Address)]
		return text, ok
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.plain) == 0 {
		return "", false
	}
	text = x.plain[0]
	if len(x.plain) > 1 {
		x.plain = x.plain[1:]
	}
	return text, true
}

// spoken makes an answer of one text: one of the question's answers, or what is filled in.
func spoken(answers []string, form json.RawMessage, text string) (action string, filled json.RawMessage, err error) {
	if slices.Contains(answers, text) {
		return text, nil, nil
	}
	schema, _ := contract.Compile(form)
	if schema == nil || !slices.Contains(answers, handoff.Reply) {
		return "", nil, &run.Denied{
			Reason: fmt.Sprintf("%q isn't an answer to the question", text),
			Hint:   "it takes " + strings.Join(answers, ", "),
		}
	}
	if fields := schema.Fields(); len(fields) == 1 && fields[0].Name == handoff.Reply {
		filled, err = json.Marshal(map[string]string{handoff.Reply: text})
		return handoff.Reply, filled, err
	}
	payload, err := contract.Decode([]byte(text), maxSpoken)
	if err == nil && len(schema.Validate(payload)) == 0 {
		return handoff.Reply, payload.JSON(), nil
	}
	return "", nil, &run.Denied{
		Reason: "the answer given breaks the form of the question",
		Hint:   "give a JSON object that keeps its schema",
	}
}

const maxSpoken = 1 << 20 // bytes

// Answer answers one question.
func (x *Given) Answer(ctx context.Context, q run.Question) (run.Answer, error) {
	if text, ok := x.take(q); ok {
		action, filled, err := spoken(q.Answers, q.Form, text)
		answer := run.Answer{Action: action}
		if err == nil && filled != nil {
			err = json.Unmarshal(filled, &answer.Form)
		}
		return answer, err
	}
	if in, ok := x.env.In.(interface{ Fd() uintptr }); !ok || !x.env.Err.Terminal ||
		!term.IsTerminal(int(in.Fd())) {
		return run.Answer{}, &run.Denied{
			Reason: "it asks a person, and nobody is there: " + q.Text,
			Hint: fmt.Sprintf("give the answer with --answer %s, or run it on a server, which waits for it",
				answerFlag(q)),
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ask(ctx, q)
}

// answerFlag is an example of what --answer takes for a question.
func answerFlag(q run.Question) string {
	if q.Kind == "" {
		return flow.NodePath(q.Address) + "=" + q.Answers[0]
	}
	return strconv.Quote(q.Answers[0])
}

// ask asks at the terminal.
func (x *Given) ask(ctx context.Context, q run.Question) (run.Answer, error) {
	out := x.env.Err
	out.Line("%s", out.Style(ui.Bold, ui.Printable(q.Text)))
	showShown(out, shownOf(q.Show))
	if q.Kind == api.QuestionInput && slices.Contains(q.Answers, handoff.Reply) {
		form, err := x.fill(ctx, q.Form)
		return run.Answer{Action: handoff.Reply, Form: form, By: "terminal"}, err
	}
	for {
		action, err := x.readLine(ctx, strings.Join(q.Answers, " or ")+"?")
		if err != nil {
			return run.Answer{}, err
		}
		if !slices.Contains(q.Answers, action) {
			continue
		}
		form, err := x.fill(ctx, q.Form)
		return run.Answer{Action: action, Form: form, By: "terminal"}, err
	}
}

// fill asks for each field of a form.
func (x *Given) fill(ctx context.Context, form json.RawMessage) (map[string]any, error) {
	if len(form) == 0 {
		return nil, nil
	}
	schema, _ := contract.Compile(form)
	if schema == nil {
		return nil, fault.New(fault.Capsule, "the form of the question can't be read").WithHint("see aod validate")
	}
	filled := map[string]any{}
	for _, field := range schema.Fields() {
		for {
			text, err := x.readLine(ctx, ui.Printable(field.Name)+":")
			if err != nil {
				return nil, err
			}
			if text == "" {
				break
			}
			value, err := schema.ParseField(field.Name, text)
			if err == nil {
				filled[field.Name] = value
				break
			}
			x.env.Err.Fault(err)
		}
	}
	return filled, nil
}

// readLine reads a line of the terminal. The goroutine that reads on after ctx's end goes with
// the process.
func (x *Given) readLine(ctx context.Context, prompt string) (string, error) {
	_, _ = io.WriteString(x.env.Err, prompt+" ")
	if x.lines == nil {
		x.lines = bufio.NewReader(x.env.In)
	}
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		line, err := x.lines.ReadString('\n')
		done <- read{strings.TrimSpace(line), err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return "", &run.Denied{Reason: "nobody answers", Hint: "give the answer with --answer"}
		}
		return r.line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// formOf makes what is filled in of assignments, typed by the form.
func formOf(form json.RawMessage, assignments []string) (json.RawMessage, error) {
	if len(assignments) == 0 {
		return nil, nil
	}
	schema, _ := contract.Compile(form)
	if schema == nil {
		return nil, fault.New(fault.Input, "the question has no form to fill in").WithHint("leave --set out")
	}
	var filled contract.Payload
	for _, assignment := range assignments {
		var err error
		if filled, err = runflags.Assign(filled, assignment, schema); err != nil {
			return nil, err
		}
	}
	return filled.JSON(), nil
}
