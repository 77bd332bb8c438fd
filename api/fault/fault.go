package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

// Error is a failure with a public side (Kind, Msg, Hint, Findings) and a private
// cause (Err).
type Error struct {
	Kind     Kind
	Msg      string    // what happened, for whoever asked; no payload, no secret
	Hint     string    // what to do about it; may be empty
	Findings []Finding // every single violation, where there is more than a message
	Err      error     // the cause, for the operator's log; may be nil

	// Retry is after how long the same may succeed; 0: nobody knows.
	Retry time.Duration

	// Foreign are the parts of Msg and Hint that came out of a payload; see Without.
	Foreign []string
}

// New returns an Error of the given kind; the message is formatted as by fmt.Sprintf.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...), Foreign: foreignIn(args)}
}

// Wrap returns an Error of the given kind with err as its private cause.
func Wrap(kind Kind, err error, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...), Err: err, Foreign: foreignIn(args)}
}

// WithHint sets what to do about the error and returns it.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	e.Foreign = append(e.Foreign, foreignIn(args)...)
	return e
}

// WithRetry sets after how long the same may succeed and returns the error.
func (e *Error) WithRetry(after time.Duration) *Error {
	e.Retry = after
	return e
}

// WithFindings sets the single violations and returns the error.
func (e *Error) WithFindings(findings []Finding) *Error {
	e.Findings = findings
	return e
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Msg + ": " + e.Err.Error()
	}
	return e.Msg
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the outermost Error in err's chain. A bare context
// error is Cancelled or Deadline; everything else is Internal.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return Deadline
	}
	return Internal
}

// Is reports whether err is of the given kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// Public returns the Error that may be shown for err. Of an error that is no
// *Error nothing is shown but its kind's fixed text.
func Public(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	kind := KindOf(err)
	return &Error{Kind: kind, Msg: kind.Title(), Err: err}
}

// LogAttr says in a log what went wrong. An error of the file system tells names, which
// capsules and their callers choose: of it only the operation and the reason are logged.
func LogAttr(err error) slog.Attr {
	if known := (*Error)(nil); errors.As(err, &known) && known.Kind == Input {
		return slog.String("error", "input refused") // its text may name what a client sent
	}
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return slog.String("error", path.Op+": "+path.Err.Error())
	case errors.As(err, &link):
		return slog.String("error", link.Op+": "+link.Err.Error())
	}
	return slog.Any("error", err)
}
