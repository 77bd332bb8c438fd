package httpwire

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrSilent is the cause of the end of a context whose other side said nothing for too long.
var ErrSilent = errors.New("the other side is silent")

// Silence ends a request whose other side says nothing for too long.
type Silence struct {
	timer *time.Timer
	end   context.CancelCauseFunc
	last  bool // the end isn't put off any more
}

// WatchSilence returns a context that ends with ErrSilent unless Heard is called within d.
// Stop must be called.
func WatchSilence(ctx context.Context, d time.Duration) (context.Context, *Silence) {
	ctx, end := context.WithCancelCause(ctx)
	return ctx, EndAfterSilence(end, d)
}

// EndAfterSilence is WatchSilence for a context that there is: end ends it.
func EndAfterSilence(end context.CancelCauseFunc, d time.Duration) *Silence {
	return &Silence{timer: time.AfterFunc(d, func() { end(ErrSilent) }), end: end}
}

// Heard puts the end off: it comes after d without another word.
func (s *Silence) Heard(d time.Duration) {
	if !s.last {
		s.timer.Reset(d)
	}
}

// Last has the end come after d, whatever is heard before that. It is for whoever calls Heard.
func (s *Silence) Last(d time.Duration) {
	s.last = true
	s.timer.Reset(d)
}

// Stop ends the context.
func (s *Silence) Stop(cause error) {
	s.timer.Stop()
	s.end(cause)
}

// Reader returns a reader whose reads put the end off.
func (s *Silence) Reader(r io.Reader, d time.Duration) io.Reader {
	return s.PatientReader(r, func() time.Duration { return d })
}

// PatientReader is Reader with a patience that changes: each read asks for it.
func (s *Silence) PatientReader(r io.Reader, patience func() time.Duration) io.Reader {
	return heard{r, s, patience}
}

type heard struct {
	io.Reader
	silence  *Silence
	patience func() time.Duration
}

func (r heard) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.silence.Heard(r.patience())
	return n, err
}
