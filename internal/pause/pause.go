// Package pause waits for a while or for news, unless a context ends before, and tells whether an end
// has come.
//
// It must not know what is waited for.
package pause

import (
	"context"
	"sync"
	"time"
)

// For returns after d, at once unless that is above zero. The error is the cause of ctx's end.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Over reports whether a channel is closed, which tells of an end by that.
func Over(end <-chan struct{}) bool {
	select {
	case <-end:
		return true
	default:
		return false
	}
}

// Value is set once, and wakes those who wait for it.
type Value[T any] struct {
	set   chan struct{}
	value T
}

// NewValue returns a Value that isn't set.
func NewValue[T any]() *Value[T] { return &Value[T]{set: make(chan struct{})} }

// Set sets the value. It is called once.
func (v *Value[T]) Set(value T) {
	v.value = value
	close(v.set)
}

// Done returns a channel that is closed when the value is set.
func (v *Value[T]) Done() <-chan struct{} { return v.set }

// IsSet reports whether the value is set.
func (v *Value[T]) IsSet() bool { return Over(v.set) }

// Get returns the value, which is set.
func (v *Value[T]) Get() T { return v.value }

// Notifier wakes every goroutine that waits for news. The zero value has none yet.
type Notifier struct {
	mu   sync.Mutex
	next chan struct{}
}

// After returns a channel that the next Notify closes.
func (n *Notifier) After() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

// Notify wakes those who wait.
func (n *Notifier) Notify() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}

// IsAwaited reports whether somebody waits for the next Notify.
func (n *Notifier) IsAwaited() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.next != nil
}
