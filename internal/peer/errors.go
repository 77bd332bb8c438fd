package peer

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"syscall"

	"github.com/agent-on-demand/aod/api/fault"
)

// Violation is an answer that breaks the protocol, with the id of the rule. It is an Unsupported fault: a retry would
// bring the same answer.
type Violation struct {
	Rule  string
	Fault *fault.Error
}

// Error implements error.
func (v *Violation) Error() string { return v.Fault.Error() }

// Unwrap returns the fault.
func (v *Violation) Unwrap() error { return v.Fault }

// Kinds are the kinds of fault that a protocol's statuses of HTTP mean.
type Kinds struct {
	Own    map[int]fault.Kind // of statuses that don't mean the same everywhere
	Failed fault.Kind         // of all others with which an agent says that it failed itself
}

// everywhere are the statuses that mean the same in all protocols.
var everywhere = map[int]fault.Kind{
	http.StatusUnauthorized: fault.Unauthorized, http.StatusForbidden: fault.Forbidden,
	http.StatusNotFound: fault.NotFound, http.StatusTooManyRequests: fault.Busy,
	http.StatusNotImplemented: fault.Unsupported,
}

// Of returns the kind of a status that isn't a success.
func (k Kinds) Of(status int) fault.Kind {
	for _, known := range []map[int]fault.Kind{k.Own, everywhere} {
		if kind, found := known[status]; found {
			return kind
		}
	}
	if status >= http.StatusInternalServerError {
		return k.Failed
	}
	return fault.Unsupported
}

// Lost is the fault of a request without a whole answer, of which the format says what is missing: Unavailable, or a
// Forbidden one of the transport as it is.
func Lost(err error, format string, args ...any) error {
	if fault.Is(err, fault.Forbidden) { // the transport of whoever asks may not reach the agent
		return fault.Public(err)
	}
	return fault.Wrap(fault.Unavailable, Reason(err), format, args...).
		WithHint("is it running, and is its address right?")
}

// Why the server at an https address isn't trusted: causes of Unavailable faults.
var (
	ErrCertificate = errors.New("its certificate is not trusted")
	ErrHandshake   = errors.New("it doesn't speak TLS as we do")
)

// Reason says in our own words why there was no answer. The errors of net/http may quote the other side.
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

// isAlert reports whether one side ended the handshake with an alert. The type of an alert is crypto/tls's own, and it
// wraps it as follows.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}
