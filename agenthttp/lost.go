package agenthttp

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/fault"
)

var (
	errTimeout = errors.New("the time for the call is over")
	errSilent  = errors.New("the agent has been silent for too long")
)

// Why there is no trust in what answers at an https address: causes of Unavailable faults.
// To ask again would bring the same.
var (
	ErrCertificate = errors.New("its certificate is not trusted")
	ErrHandshake   = errors.New("it doesn't speak TLS as we do")
)

const (
	firstPause = 200 * time.Millisecond
	maxPause   = 30 * time.Second // also of what an agent asks for
)

// setback is a fault after which the call may be made again.
type setback struct {
	err   error         // what is told when it isn't
	after time.Duration // how long the agent wants us to wait
	began bool          // the task may have run
}

func (s *setback) Error() string { return s.err.Error() }

func (s *setback) Unwrap() error { return s.err }

// patience says whether to try again, and after what pause: what the agent asks for, else
// twice as long each time, half of it by chance so that callers don't come together.
func (c *Client) patience(ctx context.Context, lost *setback, try int) (time.Duration, bool) {
	if ctx.Err() != nil || try >= c.opts.Tries || lost.began && !c.opts.Repeatable || lost.after > maxPause {
		return 0, false
	}
	pause := min(maxPause, firstPause<<min(try-1, 10))
	pause = pause/2 + rand.N(pause/2) //nolint:gosec // G404: no secret, only a spread
	pause = max(pause, lost.after)
	if until, ok := ctx.Deadline(); ok && time.Until(until) <= pause {
		return 0, false // the fault says more than that the time is over
	}
	return pause, true
}

// sleep returns after that time, or with the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// unanswered is what it means that no answer came.
func (c *Client) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return c.ended(ctx)
	}
	return &setback{err: c.unavailable(err, "the agent at %s does not answer", c.base.Host), began: !neverSent(err)}
}

// brokeOff is what it means that an answer has no end.
func (c *Client) brokeOff(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return c.ended(ctx)
	}
	return c.unavailable(err, "the answer of the agent at %s broke off", c.base.Host)
}

func (c *Client) unavailable(err error, format string, args ...any) *fault.Error {
	return fault.Wrap(fault.Unavailable, reason(err), format, args...).
		WithHint("is it running, and is its address right?")
}

// ended says why a context is over: by a limit of ours, or by the caller.
func (c *Client) ended(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return fault.Wrap(fault.Deadline, errTimeout, "the agent at %s took longer than %s", c.base.Host, c.opts.Timeout)
	case errors.Is(cause, errSilent):
		return fault.Wrap(fault.Deadline, errSilent, "the agent at %s sent nothing for %s", c.base.Host, c.opts.Silence).
			WithHint("agents keep a stream alive with comments")
	default:
		return cause
	}
}

// neverSent reports whether an error came before anything was sent.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// reason says why there was no answer in words of ours. The errors of net/http may quote
// what came from the other side.
func reason(err error) error {
	var number syscall.Errno
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var network net.Error
	switch {
	case errors.As(err, &number):
		return number
	case errors.As(err, &dns):
		return errors.New("there is no host of this name")
	case errors.As(err, &certificate):
		return ErrCertificate
	case errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return ErrHandshake
	case errors.As(err, &network) && network.Timeout():
		return errors.New("it took too long")
	}
	return errors.New("no whole HTTP answer came")
}
