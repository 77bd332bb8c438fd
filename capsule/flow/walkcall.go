package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// The kinds of failures of calls that another try can't mend, unless `on` names them.
const (
	kindInvalidInput = "invalid_input"
	kindCancelled    = "cancelled"
)

// tries calls the unit of a node until that succeeds, or no other try is left. Timeout is of
// each one; 0: none.
func (f frame) tries(ctx context.Context, node *Node, o *outcome, timeout time.Duration) error {
	c, err := f.call(ctx, node, o.step.Address)
	if err != nil {
		return err
	}
	if err := f.resume(ctx, o); err != nil {
		return err
	}
	for ; ; o.step.Try++ {
		o.step.Began = now()
		c.Try, c.Key = o.step.Try, key(c.Address, o.step.Try)
		result, err := f.try(ctx, c, timeout)
		o.called(c, result)
		var failure *failing
		if !errors.As(err, &failure) {
			return err
		}
		wait, again := node.Retry.after(c.Try, failure)
		if !again || outlasts(ctx, wait) {
			return err
		}
		if err := f.rest(ctx, o, &failure.Failure, wait); err != nil {
			return err
		}
	}
}

// key is what a child run is joined by.
func key(address string, try int) string { return fmt.Sprintf("flow/%s~%d", address, try) }

// call is what the node asks for, without its try.
func (f frame) call(ctx context.Context, node *Node, address string) (Call, error) {
	unit, err := f.text(ctx, address, "run", node.Run, nil)
	if err != nil {
		return Call{}, err
	}
	if _, literal := node.Run.Literal(); unit == "" || (!literal || node.Units != nil) &&
		!slices.Contains(node.Units, unit) {
		return Call{}, failed(address, KindExpression, "run: it names a unit that its units don't list")
	}
	input, err := f.object(ctx, address, "with", node.With, nil)
	if err != nil {
		return Call{}, err
	}
	return Call{Address: address, Unit: unit, Input: input, Cache: node.Cache}, nil
}

// try makes one call. A success counts although its time was up at the same moment.
func (f frame) try(ctx context.Context, c Call, timeout time.Duration) (Result, error) {
	if err := cmp.Or(f.halted(), context.Cause(ctx)); err != nil {
		return Result{}, err
	}
	up := &timeUp{c.Address}
	limited, cancel := ctx, func() {}
	if timeout > 0 {
		limited, cancel = context.WithTimeoutCause(ctx, timeout, up)
	}
	defer cancel()
	result, err := f.host.Call(limited, c)
	if err == nil {
		return result, nil
	}
	var e *CallError
	gave := errors.As(err, &e)
	cause := context.Cause(ctx)
	switch {
	case gave && cause != nil: // whether it failed by itself is seen when it is joined again
		return Result{}, cause
	case errors.Is(context.Cause(limited), up) && (!gave || e.Failure.Kind == kindCancelled):
		return Result{Run: e.run()}, outOfTime(c.Address, timeout)
	case !gave:
		return Result{}, f.stopping(ctx, err)
	}
	return Result{Run: e.Run}, e.failing(c.Address)
}

func (e *CallError) failing(address string) *failing {
	f := &failing{Failure: e.Failure, refused: e.Refused}
	f.Node = address
	return f
}

func (e *CallError) run() string {
	if e == nil {
		return ""
	}
	return e.Run
}

func outOfTime(address string, timeout time.Duration) *failing {
	f := failed(address, KindTimeout, "it took longer than %s", quantity.DurationText(timeout)).
		withHint("raise its timeout, or say with next.timeout where the flow goes on")
	f.Category = transient
	return f
}

// called notes in the outcome what a try gave.
func (o *outcome) called(c Call, result Result) {
	o.step.Run, o.step.Cached = result.Run, result.Cached
	o.out = result.Output
	o.run = map[string]any{
		"id": result.Run, "unit": c.Unit, "cached": result.Cached,
		"retries": int64(c.Try - 1), "action": result.Action,
	}
}

// resume waits for the rest of the pause in which an earlier walk has ended.
func (f frame) resume(ctx context.Context, o *outcome) error {
	last, ok := f.kept[o.step.Address]
	if !ok {
		return nil
	}
	o.step.Try = last.Try
	if last.State == Failed {
		o.step.Try++
	}
	return pause.For(ctx, time.Until(last.Until))
}

// rest keeps the failed try and waits until the next one begins.
func (f frame) rest(ctx context.Context, o *outcome, failure *Failure, wait time.Duration) error {
	tried := o.step
	tried.State, tried.Failure, tried.Ended = Failed, failure, now()
	tried.Until = tried.Ended.Add(wait)
	if err := f.keep(ctx, tried); err != nil || wait <= 0 {
		return err
	}
	waiting := Step{Address: tried.Address, Try: tried.Try + 1, State: Open, Began: tried.Ended, Until: tried.Until}
	if err := f.keep(ctx, waiting); err != nil {
		return err
	}
	return pause.For(ctx, time.Until(tried.Until))
}

func outlasts(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < wait
}

// after says whether a try is followed by another one, and after which pause.
func (r Retry) after(try int, f *failing) (time.Duration, bool) {
	if try >= r.Tries || f.refused || !r.covers(f.Failure) {
		return 0, false
	}
	wait := float64(r.Wait) * math.Pow(cmp.Or(r.Factor, 1), float64(try-1))
	most := float64(cmp.Or(r.MaxWait, math.MaxInt64/2))
	return time.Duration(min(wait, most)), true
}

func (r Retry) covers(f Failure) bool {
	if r.On == nil {
		return f.Kind != kindInvalidInput && f.Kind != kindCancelled
	}
	return slices.Contains(r.On, f.Category) || slices.Contains(r.On, f.Kind)
}

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
	q := Question{
		Address: address, Text: text, Show: show, Answers: node.Ask.Answers, Approvers: node.Ask.Approvers,
		Alone: ofFlowItself(address),
	}
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
