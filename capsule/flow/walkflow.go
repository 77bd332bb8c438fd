package flow

import (
	"context"
)

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
