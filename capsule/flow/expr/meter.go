package expr

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"
)

const (
	// maxTime is the processor time that an expression may take. Time in which its thread waits
	// for a processor doesn't count, so a busy machine fails no expression.
	maxTime = 250 * time.Millisecond
	// maxText is how long a text may become, in bytes.
	maxText = 4 << 20
	// maxValues is how many values an expression may make or look at in depth.
	maxValues = 2_000_000
)

var (
	errTime   = fmt.Errorf("it takes longer than %s", maxTime)
	errMemory = errors.New("its result or a part of it becomes too large")
)

// meter is what an evaluation may still take. An expression finds it among its variables,
// under a name that can't be written. A nil one bounds nothing.
type meter struct {
	ctx    context.Context //nolint:containedctx // lives as long as one evaluation
	began  time.Duration   // threadTime at the beginning
	until  time.Time       // before it, maxTime can't be over
	values int
}

// newMeter begins a measurement. The goroutine must be locked to its thread for as long as it
// lasts.
func newMeter(ctx context.Context) *meter {
	return &meter{ctx: ctx, began: threadTime(), until: time.Now().Add(maxTime)}
}

// tick is called in every iteration, and at whatever takes time.
func (m *meter) tick() error {
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	if now := time.Now(); now.After(m.until) {
		left := maxTime - (threadTime() - m.began)
		if left <= 0 {
			return errTime
		}
		m.until = now.Add(left)
	}
	return nil
}

// grow counts values that are made or looked at.
func (m *meter) grow(n int) error {
	if m == nil {
		return nil
	}
	before := m.values >> 10
	m.values += n
	if n < 0 || m.values > maxValues {
		return errMemory
	}
	if m.values>>10 != before {
		return m.tick()
	}
	return nil
}

// text counts the bytes of a text that is about to be made.
func (m *meter) text(bytes int) error {
	if m == nil {
		return nil
	}
	if bytes < 0 || bytes > maxText {
		return errMemory
	}
	return m.grow(bytes / 64)
}

// equal is the operator for values that may be deep.
func equal(m *meter, args []any) (any, error) { return m.equal(args[0], args[1], 0) }

// in is the operator: an item of a list, or a key of an object.
func in(m *meter, args []any) (any, error) {
	needle := args[0]
	where, err := m.plain(args[1])
	if err != nil {
		return nil, err
	}
	switch v := where.(type) {
	case nil:
		return false, nil
	case map[string]any:
		key, err := textArgument("in", needle)
		_, ok := v[key]
		return ok, err
	}
	list, err := listOf(m, "in", where)
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		if found, err := m.equal(item, needle, 0); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

func (m *meter) equal(a, b any, depth int) (bool, error) {
	if depth > maxDepth {
		return false, errDeep
	}
	if err := m.grow(1); err != nil {
		return false, err
	}
	a, err := m.plain(a)
	if err != nil {
		return false, err
	}
	if b, err = m.plain(b); err != nil {
		return false, err
	}
	switch x := a.(type) {
	case int64, float64:
		_, _, _, ok := number(b)
		return ok && compare(a, b) == 0, nil
	case []any:
		y, ok := b.([]any)
		return m.equalLists(x, y, ok, depth)
	case map[string]any:
		y, ok := b.(map[string]any)
		return m.equalObjects(x, y, ok, depth)
	}
	return reflect.DeepEqual(a, b), nil
}

func (m *meter) equalLists(x, y []any, ok bool, depth int) (bool, error) {
	if !ok || len(x) != len(y) {
		return false, nil
	}
	for i := range x {
		if same, err := m.equal(x[i], y[i], depth+1); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (m *meter) equalObjects(x, y map[string]any, ok bool, depth int) (bool, error) {
	if !ok || len(x) != len(y) {
		return false, nil
	}
	for key, member := range x {
		other, there := y[key]
		if !there {
			return false, nil
		}
		if same, err := m.equal(member, other, depth+1); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// identity is a key that equal values share.
func (m *meter) identity(value any) (any, error) {
	value, err := m.normal(value, 0)
	if err != nil {
		return nil, err
	}
	switch value.(type) {
	case nil, bool, string, int64, float64:
		return value, nil
	case []any, map[string]any:
		text, err := jsonOf(value, maxText)
		return identity{text}, err
	}
	return value, nil
}

// identity tells the JSON of a value from a text.
type identity struct{ json string }
