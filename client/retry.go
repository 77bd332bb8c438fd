package client

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
	// callTries bounds a call: less than a second, since somebody waits for an answer.
	callTries = 4
	// streamTries bounds what has been connected already: about 40 seconds, in which
	// a server is started anew.
	streamTries = 13
	// steadyTime is how long a connection has to last to count as a good one.
	steadyTime = 10 * time.Second
)

// retrier counts the failed tries in a row, and waits between them.
type retrier struct {
	pause  func(context.Context, time.Duration) error
	pauses backoff.ExponentialBackOff
	tries  int
	most   int
}

func (c *Client) newRetrier() *retrier {
	pauses := backoff.ExponentialBackOff{InitialInterval: firstPause, Multiplier: 2, MaxInterval: maxPause}
	pauses.Reset()
	return &retrier{pause: c.pause, pauses: pauses, most: callTries}
}

// renew resets the count, since something came.
func (r *retrier) renew() {
	r.tries, r.most = 0, streamTries
	r.pauses.Reset()
}

// wait returns nil when it is time for the next try, and the given error when there is none.
func (r *retrier) wait(ctx context.Context, err error) error {
	if r.tries++; r.tries >= r.most {
		return err
	}
	if over := r.pause(ctx, r.pauses.NextBackOff()); errors.Is(over, errSilent) {
		return err // which says more
	} else if over != nil {
		return over
	}
	return nil
}

// sleep returns after that time, or with the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
