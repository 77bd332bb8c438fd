package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/flow"
)

// flowAnswers are the answers to the questions of a flow that runs here: those that were given
// before, and those of whoever sits at the terminal.
type flowAnswers struct {
	app   *app
	given map[string]string // actions by flow.NodePath

	mu    sync.Mutex // one question at a time
	lines *bufio.Reader
}

// answerGiven parses --answer NODE=ACTION.
func (a *app) answerGiven(flags []string) (*flowAnswers, error) {
	given := map[string]string{}
	for _, assignment := range flags {
		node, action, err := split("--answer", assignment, "NODE=ACTION")
		if err != nil {
			return nil, err
		}
		given[node] = action
	}
	return &flowAnswers{app: a, given: given}, nil
}

// answer answers one question.
func (x *flowAnswers) answer(ctx context.Context, q flow.Question) (flow.Answer, error) {
	node := flow.NodePath(q.Address)
	if action, ok := x.given[node]; ok {
		if !slices.Contains(q.Answers, action) {
			return flow.Answer{}, unanswered(q, fmt.Sprintf("%q is no answer to the question", action), "it takes "+strings.Join(q.Answers, ", "))
		}
		return flow.Answer{Action: action}, nil
	}
	if in, ok := x.app.stdin.(interface{ Fd() uintptr }); !ok || !x.app.stderr.terminal || !term.IsTerminal(int(in.Fd())) {
		return flow.Answer{}, unanswered(q, "it asks a person, and nobody is there: "+q.Text,
			fmt.Sprintf("give the answer with --answer %s=%s, or run the flow on a server, which waits for it", node, q.Answers[0]))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ask(ctx, q)
}

// unanswered is the failure of a node that gets no answer.
func unanswered(q flow.Question, message, hint string) error {
	return &flow.CallError{Refused: true, Failure: flow.Failure{
		Node: q.Address, Category: string(api.CategoryPermanent), Kind: "unanswered", Message: message, Hint: hint,
	}}
}

// ask asks at the terminal.
func (x *flowAnswers) ask(ctx context.Context, q flow.Question) (flow.Answer, error) {
	out := x.app.stderr
	out.line("%s", out.style(bold, printable(q.Text)))
	x.app.showShown(out, q.Show)
	for {
		action, err := x.readLine(ctx, strings.Join(q.Answers, " or ")+"?")
		if err != nil {
			return flow.Answer{}, err
		}
		if !slices.Contains(q.Answers, action) {
			continue
		}
		form, err := x.fill(ctx, q.Form)
		return flow.Answer{Action: action, Form: form, By: "terminal"}, err
	}
}

// fill asks for each field of a form.
func (x *flowAnswers) fill(ctx context.Context, form json.RawMessage) (map[string]any, error) {
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
			text, err := x.readLine(ctx, printable(field.Name)+":")
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
			x.app.stderr.fault(err)
		}
	}
	return filled, nil
}

// readLine reads a line of the terminal. The goroutine that reads on after ctx's end goes with
// the process.
func (x *flowAnswers) readLine(ctx context.Context, prompt string) (string, error) {
	_, _ = io.WriteString(x.app.stderr, prompt+" ")
	if x.lines == nil {
		x.lines = bufio.NewReader(x.app.stdin)
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
			return "", fault.Wrap(fault.Input, r.err, "nobody answers").WithHint("give the answer with --answer NODE=ACTION")
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
		if filled, err = assign(filled, assignment, schema); err != nil {
			return nil, err
		}
	}
	return filled.JSON(), nil
}
