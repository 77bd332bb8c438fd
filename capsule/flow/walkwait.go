package flow

import (
	"context"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// open returns until when a node waits, as it was first kept. A zero time is no end.
func (f frame) open(ctx context.Context, o *outcome, until func() (time.Time, error)) (time.Time, error) {
	if step, ok := f.kept[o.step.Address]; ok && step.State == Open {
		o.step.Began = step.Began
		return step.Until, nil
	}
	end, err := until()
	if err != nil {
		return time.Time{}, err
	}
	step := o.step
	step.State, step.Until = Open, end
	return end, f.keep(ctx, step)
}

// limit returns the end of a node's time; zero: it has no limit.
func (o *outcome) limit(timeout time.Duration) (time.Time, error) {
	if timeout == 0 {
		return time.Time{}, nil
	}
	return o.step.Began.Add(timeout), nil
}

// within does the work of a node within its timeout, which goes on across restarts. What has
// ended when the time is up counts.
func (f frame) within(
	ctx context.Context, node *Node, o *outcome, do func(context.Context, *Node, *outcome) error,
) error {
	if node.Timeout == 0 {
		return do(ctx, node, o)
	}
	until, err := f.open(ctx, o, func() (time.Time, error) { return o.limit(node.Timeout) })
	if err != nil {
		return err
	}
	return f.before(ctx, node, o, until, func(ctx context.Context) error { return do(ctx, node, o) })
}

// before does something until a time; zero: without an end.
func (f frame) before(
	ctx context.Context, node *Node, o *outcome, until time.Time, do func(context.Context) error,
) error {
	if until.IsZero() {
		return do(ctx)
	}
	up := &timeUp{o.step.Address}
	limited, cancel := context.WithDeadlineCause(ctx, until, up)
	defer cancel()
	err := do(limited)
	if errors.Is(err, up) && ctx.Err() == nil {
		return outOfTime(o.step.Address, node.Timeout)
	}
	return err
}

// wait does nothing for a duration, or until a time.
func (f frame) wait(ctx context.Context, node *Node, o *outcome) error {
	until, err := f.open(ctx, o, func() (time.Time, error) { return f.waitsUntil(ctx, node, o) })
	if err != nil {
		return err
	}
	return pause.For(ctx, time.Until(until))
}

func (f frame) waitsUntil(ctx context.Context, node *Node, o *outcome) (time.Time, error) {
	text, err := f.text(ctx, o.step.Address, "wait", node.Wait, nil)
	if err != nil {
		return time.Time{}, err
	}
	if until, err := time.Parse(time.RFC3339, text); err == nil {
		return until.UTC(), nil
	}
	duration, err := quantity.ParseDuration(text, 0, maxWait)
	if err != nil {
		return time.Time{}, failed(o.step.Address, KindExpression, "wait: %s", err).
			withHint("write a duration such as 30s or 12h, or a time such as 2027-01-31T09:00:00Z")
	}
	return o.step.Began.Add(duration), nil
}

// ask has a person answer a question. The answer is the action.
func (f frame) ask(ctx context.Context, node *Node, o *outcome) error {
	q, err := f.question(ctx, node, o.step.Address)
	if err != nil {
		return err
	}
	q.Until, err = f.open(ctx, o, func() (time.Time, error) { return o.limit(node.Timeout) })
	if err != nil {
		return err
	}
	return f.before(ctx, node, o, q.Until, func(ctx context.Context) error {
		answer, err := f.host.Ask(ctx, q)
		var e *CallError
		switch {
		case errors.As(err, &e):
			return e.failing(q.Address)
		case err != nil:
			return f.stopping(ctx, err)
		}
		o.answered(answer)
		return nil
	})
}

func (f frame) question(ctx context.Context, node *Node, address string) (Question, error) {
	text, err := f.text(ctx, address, "ask", node.Ask.Question, nil)
	if err != nil {
		return Question{}, err
	}
	show, err := f.object(ctx, address, "show", node.Ask.Show, nil)
	if err != nil {
		return Question{}, err
	}
	q := Question{Address: address, Text: text, Show: show, Answers: node.Ask.Answers, Alone: ofFlowItself(address)}
	if node.Ask.Form != nil {
		q.Form, err = Encode(node.Ask.Form)
	}
	return q, err
}

func (o *outcome) answered(a Answer) {
	out := make(map[string]any, len(a.Form)+3)
	for name, value := range a.Form {
		out[name] = value
	}
	out["by"], out["at"] = a.By, a.At.UTC().Format(time.RFC3339)
	if a.Note != "" {
		out["note"] = a.Note
	}
	o.out, o.action = out, a.Action
}
