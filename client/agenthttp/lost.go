package agenthttp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"syscall"

	"github.com/agent-on-demand/aod/api/fault"
)

var (
	errTimeout = errors.New("the time for the call is over")
	errSilent  = errors.New("the agent has been silent for too long")
)

// Why the server at an https address isn't trusted: causes of Unavailable faults.
var (
	ErrCertificate = errors.New("its certificate is not trusted")
	ErrHandshake   = errors.New("it doesn't speak TLS as we do")
)

// lost is the error for a request without a whole answer. what says what is missing, with a place for the agent's host.
func (c *Client) lost(ctx context.Context, err error, what string) error {
	if ctx.Err() != nil {
		return c.ended(ctx)
	}
	if fault.Is(err, fault.Forbidden) { // the transport of whoever asks may not reach the agent
		return fault.Public(err)
	}
	return fault.Wrap(fault.Unavailable, Reason(err), what, c.base.Host).
		WithHint("is it running, and is its address right?")
}

// ended says why a context ended: by a limit of ours, or by the caller.
func (c *Client) ended(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTimeout):
		return fault.Wrap(fault.Deadline, errTimeout, "the agent at %s took longer than %s", c.base.Host,
			c.opts.Timeout)
	case errors.Is(cause, errSilent):
		return fault.Wrap(fault.Deadline, errSilent, "the agent at %s sent nothing for %s", c.base.Host,
			c.opts.Silence).
			WithHint("agents keep a stream alive with comments")
	default:
		return cause
	}
}

// Reason says in our own words why there was no answer. The errors of net/http may quote
// the other side.
func Reason(err error) error {
	var number syscall.Errno
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var network net.Error
	switch {
	case errors.As(err, &number):
		return number
	case errors.As(err, &dns):
		return errors.New("there is no host of this name")
	case errors.As(err, &certificate):
		return ErrCertificate
	case errors.As(err, &record), isAlert(err), errors.Is(err, http.ErrSchemeMismatch):
		return ErrHandshake
	case errors.As(err, &network) && network.Timeout():
		return errors.New("it took too long")
	}
	return errors.New("no whole HTTP answer came")
}

// isAlert reports whether one side ended the handshake with an alert. The type of an alert is
// crypto/tls's own, and it wraps it as follows.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}
