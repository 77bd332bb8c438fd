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
	// callTries bounds the tries of a call: less than a second, since a person waits for
	// the answer.
	callTries = 4
	// startTries bounds the tries of a call where nobody listens: about 6 seconds, since a
	// server that was started beside it may take them on a busy machine.
	startTries = 7
	// streamTries bounds the tries of a stream that was connected before: about 40 seconds,
	// enough for a restart of the server.
	streamTries = 13
	// steadyTime is how long a connection has to last to count as a good one.
	steadyTime = 10 * time.Second
)

// retrier counts consecutive failed tries, and waits between them.
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

// renew resets the count after a success.
func (r *retrier) renew() {
	r.tries, r.most = 0, streamTries
	r.pauses.Reset()
}

// wait returns nil when it is time for the next try, or the given error if no try is left.
func (r *retrier) wait(ctx context.Context, err error) error {
	if r.tries++; r.tries >= r.most {
		return err
	}
	if over := r.pause(ctx, r.pauses.NextBackOff()); errors.Is(over, errSilent) {
		return err // it says more than the context's
	} else if over != nil {
		return over
	}
	return nil
}
