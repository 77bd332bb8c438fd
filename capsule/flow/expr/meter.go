package expr

import (
	"context"
	"errors"
	"fmt"
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
