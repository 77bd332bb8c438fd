// Package pause waits for a while or for news, unless a context ends before, and tells whether an end
// has come.
//
// It must not know what is waited for.
package pause

import (
	"context"
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
