package flow

import (
	"cmp"
	"context"
	"maps"
	"sync"

	"github.com/agent-on-demand/aod/capsule/flow/expr"
)

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
