package flow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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
		return gift{}, failed(o.step.Address, KindExpression, "what it gives is no JSON value")
	}
	value, err := Decode(raw)
	if err != nil {
		return gift{}, failed(o.step.Address, KindExpression, "what it gives is no JSON value, or too deep")
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
