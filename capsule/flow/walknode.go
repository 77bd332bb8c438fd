package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"

	"github.com/agent-on-demand/aod/capsule/flow/expr"
)

// outcome is what a node's work came to, as long as its step isn't kept.
type outcome struct {
	step   Step
	out    any
	errors []any          // of a map: the failures of its items
	run    map[string]any // of the call; nil: there was none
	error  any            // what a fallback took the place of; nil: nothing
	writes map[string]any // what a shared sub-flow has written into the state
	action string         // by which the node ends where it has no `action`
}

func newOutcome(address string) *outcome {
	return &outcome{step: Step{Address: address, Try: 1, State: Done, Began: now()}, action: Default}
}

// vars are what expressions see after the work.
func (o *outcome) vars() expr.Vars {
	errors := o.errors
	if errors == nil {
		errors = []any{}
	}
	return expr.Vars{"out": o.out, "errors": errors, "error": o.error, "run": o.run}
}

// visit does what a node has to do, unless that is kept, and returns its action. The error is
// a failure that no edge of the node takes, or ends the walk.
func (s *scope) visit(ctx context.Context, node *Node, address string) (string, error) {
	if err := s.patched(address); err != nil {
		return "", err
	}
	if step, ok := s.ended(address); ok {
		return s.fold(step)
	}
	o := newOutcome(address)
	if node.Visits > 0 && s.visits[node.Name].(int64) > int64(node.Visits) {
		return s.exhaust(ctx, node, o)
	}
	err := s.perform(ctx, node, o)
	var delta patch
	if err == nil {
		delta, err = s.post(ctx, node, o)
	}
	if failure := failureIn(err); failure != nil {
		delta, err = s.divert(node, o, failure)
	}
	if err != nil && failureIn(err) == nil {
		return "", err
	}
	return s.end(ctx, o, delta, err)
}

// patched lets the state have what a rerun was told to set before the node; see Set.
func (s *scope) patched(address string) error {
	step, ok := s.kept[address+patchMark]
	if !ok {
		return nil
	}
	delta, err := readPatch(step.Delta)
	if err != nil {
		return err
	}
	if !s.state.fits(delta) {
		return overLimit(address)
	}
	s.write(delta)
	return nil
}

// fold takes over a kept end.
func (s *scope) fold(step Step) (string, error) {
	delta, err := readPatch(step.Delta)
	if err != nil {
		return "", err
	}
	s.write(delta)
	if step.State == Failed && step.Action == "" {
		return "", failureOf(step)
	}
	return step.Action, nil
}

func failureOf(step Step) *failing {
	if step.Failure == nil {
		return failed(step.Address, "", "it failed")
	}
	return &failing{Failure: *step.Failure}
}

// end keeps the step, and then lets the state have what it wrote.
func (s *scope) end(ctx context.Context, o *outcome, delta patch, err error) (string, error) {
	o.step.Delta, o.step.Ended = delta.raw, now()
	if err := s.keep(ctx, o.step); err != nil {
		return "", err
	}
	s.write(delta)
	return o.step.Action, err
}

func (s *scope) write(delta patch) {
	s.state.apply(delta)
	for key := range delta.values {
		s.written[key] = true
	}
}

// exhaust ends a visit that is one more than the node may have.
func (s *scope) exhaust(ctx context.Context, node *Node, o *outcome) (string, error) {
	if _, ok := node.Next.ByAction[Exhausted]; ok {
		o.step.State, o.step.Action = Skipped, Exhausted
		return s.end(ctx, o, patch{}, nil)
	}
	failure := failed(o.step.Address, KindExhausted, "it was visited %d times, which is all that it may", node.Visits).
		withHint("say with next.exhausted where the flow goes on, or raise max_visits")
	o.step.State, o.step.Failure = Failed, &failure.Failure
	return s.end(ctx, o, patch{}, failure)
}

// perform does the work of a node, unless its `when` skips it.
func (f frame) perform(ctx context.Context, node *Node, o *outcome) error {
	wanted, err := f.wanted(ctx, node, o.step.Address)
	if err != nil {
		return err
	}
	if !wanted {
		o.step.State = Skipped
		return nil
	}
	err = f.work(ctx, node, o)
	if node.Map == nil {
		err = f.fallBack(ctx, node, o, err)
	}
	return err
}

func (f frame) wanted(ctx context.Context, node *Node, address string) (bool, error) {
	if node.When == nil {
		return true, nil
	}
	value, err := f.eval(ctx, address, node.When, nil)
	if err != nil {
		return false, err
	}
	wanted, ok := value.(bool)
	if !ok {
		return false, unexpected(address, "when", "true or false", value)
	}
	return wanted, nil
}

func (f frame) work(ctx context.Context, node *Node, o *outcome) error {
	switch {
	case node.Map != nil:
		return f.within(ctx, node, o, f.overItems)
	case node.Branches != nil:
		return f.within(ctx, node, o, f.overBranches)
	case node.Flow != nil:
		return f.within(ctx, node, o, f.subflow)
	case node.Run != nil:
		return f.tries(ctx, node, o, node.Timeout)
	case node.Ask != nil:
		return f.ask(ctx, node, o)
	case node.Wait != nil:
		return f.wait(ctx, node, o)
	}
	return nil
}

// fallBack lets a value take the place of what a failed node would have given.
func (f frame) fallBack(ctx context.Context, node *Node, o *outcome, err error) error {
	failure := failureIn(err)
	if failure == nil || node.Fallback == nil {
		return err
	}
	seen, err := failure.value()
	if err != nil {
		return err
	}
	value, err := f.eval(ctx, o.step.Address, node.Fallback, expr.Vars{"error": seen})
	if err != nil {
		return err
	}
	o.out, o.errors, o.error = value, nil, seen
	o.action, o.step.Failure = Default, failure
	return nil
}

// value is the failure as expressions see it.
func (f *Failure) value() (any, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return Decode(text)
}

// post returns what the node sets, and chooses the action: by the state as it will be.
func (s *scope) post(ctx context.Context, node *Node, o *outcome) (patch, error) {
	if o.step.State == Skipped {
		o.step.Action = Default
		return patch{}, nil
	}
	address, vars := o.step.Address, o.vars()
	set, err := s.object(ctx, address, "set", node.Set, vars)
	if err != nil {
		return patch{}, err
	}
	delta, err := s.patch(address, o.writes, set)
	if err != nil {
		return patch{}, err
	}
	o.step.Action = o.action
	if node.Action == nil {
		return delta, nil
	}
	after := s.frame
	after.state = s.state.clone()
	after.state.apply(delta)
	action, err := after.text(ctx, address, "action", node.Action, vars)
	if err != nil {
		return patch{}, err
	}
	o.step.Action = cmp.Or(action, Default)
	return delta, nil
}

// divert ends a failed node by the edge for its failure, with the error in the state. Without
// such an edge the error is the failure.
func (s *scope) divert(node *Node, o *outcome, failure *Failure) (patch, error) {
	o.step.State, o.step.Failure, o.step.Action = Failed, failure, node.Next.onFailure(*failure)
	set := map[string]any{}
	if o.step.Action != "" {
		seen, err := failure.value()
		if err != nil {
			return patch{}, err
		}
		set["error"] = seen
	}
	delta, err := s.patch(o.step.Address, o.writes, set)
	if worse := failureIn(err); worse != nil {
		o.step.Failure, o.step.Action = worse, ""
		return patch{}, err
	}
	if err == nil && o.step.Action == "" {
		err = &failing{Failure: *failure}
	}
	return delta, err
}

// patch is what a step writes, if the state has room for it.
func (s *scope) patch(address string, writes, set map[string]any) (patch, error) {
	all := map[string]any{}
	maps.Copy(all, writes)
	maps.Copy(all, set)
	p, err := newPatch(all)
	if err != nil {
		return patch{}, failed(address, KindExpression, "set: %s", err)
	}
	if !s.state.fits(p) {
		return patch{}, overLimit(address)
	}
	return p, nil
}

// subflow walks the graph of a node.
func (f frame) subflow(ctx context.Context, node *Node, o *outcome) error {
	with, err := f.object(ctx, o.step.Address, "with", node.With, nil)
	if err != nil {
		return err
	}
	first, err := newPatch(with)
	if err != nil {
		return failed(o.step.Address, KindExpression, "with: %s", err)
	}
	inner := &scope{frame: f.below(node.Scoping, first), graph: node.Flow, prefix: o.step.Address + "/"}
	if !inner.state.fits(first) {
		return overLimit(o.step.Address)
	}
	inner.state.apply(first)
	o.action, err = inner.run(ctx)
	written := inner.state.only(inner.written)
	o.out = written
	if node.Scoping == Shared {
		o.writes = inner.state.only(union(inner.written, first.values))
	}
	return err
}

func union(keys map[string]bool, more map[string]any) map[string]bool {
	for key := range more {
		keys[key] = true
	}
	return keys
}

// below returns what a sub-flow sees. An isolated one sees its first state alone, which is its
// input, too.
func (f frame) below(scoping Scoping, first patch) frame {
	switch scoping {
	case Shared:
	case Isolated:
		f.state, f.items, f.input = newState(), nil, first.values
	default:
		f.state = f.state.clone()
	}
	return f
}
