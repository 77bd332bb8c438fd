package flow

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agent-on-demand/aod/capsule/flow/expr"
)

// joint is work that goes on at once and is joined: the items of a map, or branches.
type joint struct {
	size, parallel int
	bears          int // failures
	address        func(i int) string
	do             func(ctx context.Context, i int) (gift, error)
}

// gift is what an item or a branch gives to what is around it.
type gift struct {
	value any
	bytes int
}

// join takes over what is kept, and does the rest. What is kept counts first: where too much
// has failed already, nothing begins.
func (f frame) join(ctx context.Context, address string, j joint) (*results, error) {
	r := &results{values: make([]any, j.size), failures: make([]*Failure, j.size)}
	var rest []int
	for i := range j.size {
		step, ok := f.ended(j.address(i))
		if !ok {
			rest = append(rest, i)
			continue
		}
		given, err := kept(step)
		if err := r.add(i, given, err, j.bears); err != nil {
			return nil, at(address, err)
		}
	}
	err := each(ctx, rest, j.parallel, func(ctx context.Context, i int) error {
		given, err := j.do(ctx, i)
		return r.add(i, given, err, j.bears)
	})
	if stopped := f.halted(); stopped != nil {
		return nil, stopped
	}
	if err != nil {
		return nil, at(address, err)
	}
	return r, nil
}

// at gives a failure of the whole its address.
func at(address string, err error) error {
	var f *failing
	if errors.As(err, &f) && f.Node == "" {
		f.Node = address
	}
	return err
}

// kept reads the kept end of an item or a branch.
func kept(step Step) (gift, error) {
	if step.State == Failed {
		return gift{}, failureOf(step)
	}
	if step.Value == nil {
		return gift{}, nil
	}
	value, err := Decode(step.Value)
	return gift{value, len(step.Value)}, err
}

// give does the work of an item or a branch, and keeps what it gives.
func (f frame) give(ctx context.Context, o *outcome, work func() error) (gift, error) {
	var given gift
	err := work()
	if err == nil {
		given, err = o.wrap()
	}
	if failure := failureIn(err); failure != nil {
		o.step.State, o.step.Failure = Failed, failure
	} else if err != nil {
		return gift{}, err
	}
	o.step.Ended = now()
	if err := f.keep(ctx, o.step); err != nil {
		return gift{}, err
	}
	return given, err
}

// wrap makes of the output what is kept, and what that will be read as.
func (o *outcome) wrap() (gift, error) {
	if o.out == nil {
		return gift{}, nil
	}
	raw, err := Encode(o.out)
	if err != nil {
		return gift{}, failed(o.step.Address, KindExpression, "what it gives isn't a JSON value")
	}
	value, err := Decode(raw)
	if err != nil {
		return gift{}, failed(o.step.Address, KindExpression, "what it gives isn't a JSON value, or too deep")
	}
	o.step.Value = raw
	return gift{value, len(raw)}, nil
}

// errAbandoned is the cause with which the others end when an item or a branch has failed.
var errAbandoned = errors.New("another one of the same node has failed")

// each does something for each index, so many at a time, until one returns an error, which it
// returns when all have ended.
func each(ctx context.Context, indexes []int, parallel int, do func(context.Context, int) error) error {
	own, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	var (
		group sync.WaitGroup
		next  atomic.Int64
		once  sync.Once
		first error
	)
	for range min(parallel, len(indexes)) {
		group.Go(func() {
			for own.Err() == nil {
				at := int(next.Add(1)) - 1
				if at >= len(indexes) {
					return
				}
				if err := do(own, indexes[at]); err != nil {
					once.Do(func() { first = err })
					abandon(errAbandoned)
				}
			}
		})
	}
	group.Wait()
	if first == nil && int(next.Load()) < len(indexes) {
		return context.Cause(ctx)
	}
	return first
}

// overBranches does the work of all branches at once.
func (f frame) overBranches(ctx context.Context, node *Node, o *outcome) error {
	names := slices.Sorted(maps.Keys(node.Branches))
	address := func(i int) string { return o.step.Address + "/" + names[i] }
	r, err := f.join(ctx, o.step.Address, joint{
		size: len(names), parallel: len(names), address: address,
		do: func(ctx context.Context, i int) (gift, error) {
			return f.branch(ctx, node.Branches[names[i]], address(i))
		},
	})
	if err != nil {
		return err
	}
	out := make(map[string]any, len(names))
	for i, name := range names {
		out[name] = r.values[i]
	}
	o.out = out
	return nil
}

func (f frame) branch(ctx context.Context, node *Node, address string) (gift, error) {
	f.state = f.inside(node)
	o := newOutcome(address)
	return f.give(ctx, o, func() error {
		if err := fitting(address); err != nil {
			return err
		}
		return f.perform(ctx, node, o)
	})
}

// results are what the items of a map, or branches, have given so far.
type results struct {
	mu       sync.Mutex
	values   []any
	failures []*Failure // by item; nil: it hasn't failed
	failed   int
	bytes    int
}

// add takes an end in. It returns an error where that is one failure too many, or where all
// are too large together.
func (r *results) add(i int, given gift, err error, bears int) error {
	failure := failureIn(err)
	if err != nil && failure == nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values[i], r.failures[i] = given.value, failure
	if r.bytes += given.bytes; r.bytes > MaxState {
		return failed("", KindStateLimit, "the results are larger than %d bytes together", MaxState).
			withHint("collect less of each, or give large data as files")
	}
	if failure == nil {
		return nil
	}
	if r.failed++; r.failed <= bears {
		return nil
	}
	if bears == 0 {
		return err
	}
	return failed("", KindTolerance, "more than the %d of its %d items that may fail have failed", bears,
		len(r.values)).
		withHint("the last one: %s", failure.Message)
}

// overItems does a node's work for each item of its list.
func (f frame) overItems(ctx context.Context, node *Node, o *outcome) error {
	address := o.step.Address
	items, err := f.list(ctx, node, address)
	if err != nil {
		return err
	}
	f.host.Items(address, len(items))
	do := func(ctx context.Context, i int) (gift, error) { return f.item(ctx, node, address, i, items[i]) }
	r, err := f.join(ctx, address, joint{
		size: len(items), parallel: cmp.Or(node.Map.Parallel, DefaultParallel), bears: node.Map.Tolerate.of(len(items)),
		address: func(i int) string { return itemAddress(address, i) }, do: do,
	})
	if err != nil {
		return err
	}
	o.out, o.errors = r.values, []any{}
	for _, failure := range r.failures {
		if failure == nil {
			continue
		}
		seen, err := failure.value()
		if err != nil {
			return err
		}
		o.errors = append(o.errors, seen)
	}
	return nil
}

// list evaluates the list of a map. It refuses one that is longer than it may be.
func (f frame) list(ctx context.Context, node *Node, address string) ([]any, error) {
	value, err := f.eval(ctx, address, node.Map.Over, nil)
	if err != nil {
		return nil, err
	}
	items, ok := value.([]any)
	if !ok {
		return nil, unexpected(address, "map", "a list", value)
	}
	if most := cmp.Or(node.Map.Max, DefaultItems); len(items) > most {
		return nil, failed(address, KindTooMany, "the list has %d items, and may have %d", len(items), most).
			withHint("raise max, or map over parts of the list")
	}
	return items, nil
}

// of returns how many of so many items may fail.
func (t Tolerance) of(items int) int {
	if t.Items > 0 {
		return t.Items
	}
	return int(float64(items)*t.Percent/100 + 1e-9)
}

// item does the work for one item, and keeps what is collected of it.
func (f frame) item(ctx context.Context, node *Node, address string, i int, value any) (gift, error) {
	as := cmp.Or(node.Map.As, "item")
	f.items = maps.Clone(f.items)
	if f.items == nil {
		f.items = expr.Vars{}
	}
	f.items[as], f.items["index"] = value, int64(i)
	f.state = f.inside(node)
	o := newOutcome(itemAddress(address, i))
	return f.give(ctx, o, func() error {
		err := fitting(o.step.Address)
		switch {
		case err != nil:
		case node.Flow != nil:
			err = f.subflow(ctx, node, o)
		default:
			err = f.tries(ctx, node, o, 0)
		}
		err = f.fallBack(ctx, node, o, err)
		if err != nil || node.Map.Collect == nil {
			return err
		}
		o.out, err = f.eval(ctx, o.step.Address, node.Map.Collect, o.vars())
		return err
	})
}

// inside returns the state for the body of a map or a branch: what is written into it stays
// there.
func (f frame) inside(node *Node) *state {
	if node.Flow == nil || node.Scoping != Shared {
		return f.state
	}
	return f.state.clone()
}
