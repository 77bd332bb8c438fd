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
