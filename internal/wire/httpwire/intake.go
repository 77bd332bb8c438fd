package httpwire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/internal/bytegate"
)

// The pace of a body: while it is waited for, so many bytes have to come in each PaceTime.
const (
	PaceTime     = 30 * time.Second
	PaceBytes    = 1 << 20  // of what is held in memory
	paceStreamed = 32 << 10 // of what goes elsewhere, into a file
)

// Intake is what one request brings into memory. Each byte of its body counts at a Gate from the
// moment when it comes until the request is over, and a MiB has 30 seconds to come. What is
// passed on as it comes is read through Streamed. It is safe for concurrent use.
type Intake struct {
	body    io.ReadCloser
	conn    *http.ResponseController
	account bytegate.Account

	mu       sync.Mutex
	held     int64 // bytes that are taken at the gate
	reserved int64 // of those, for bytes that have not come yet
	came     int64 // bytes of the pace's present MiB
	waited   time.Duration
	streamed bool // what is read now is passed on
	ended    bool // the body has come whole
	shared   bool // its connection has other requests beside it: HTTP/2
	over     bool // the request is over
}

type intakeKey struct{}

// Receive returns the intake of a request, and the request as handlers get it. Done must be called
// when the request is over.
func Receive(w http.ResponseWriter, r *http.Request) (*Intake, *http.Request) {
	in := &Intake{body: r.Body, conn: http.NewResponseController(w), ended: r.Body == nil || r.Body == http.NoBody}
	in.shared = r.ProtoMajor > 1
	r = r.WithContext(bytegate.With(context.WithValue(r.Context(), intakeKey{}, in), &in.account))
	if !in.ended {
		if !in.shared {
			in.begin() // also where no handler reads it: the server reads what is left
		}
		r.Body = in
	}
	return in, r
}

func intakeOf(ctx context.Context) *Intake {
	in, _ := ctx.Value(intakeKey{}).(*Intake)
	return in
}

// Count has the request's bytes count at a gate from now on, for a holder. It may be called only
// before anything is read.
func (in *Intake) Count(g *bytegate.Gate, holder string) { in.account.CountAt(g, holder) }

// Done gives back what the request has taken.
func (in *Intake) Done() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.over = true
	in.free(in.held)
}

// Ended reports whether the body has come whole.
func (in *Intake) Ended() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ended
}

// Read implements io.Reader. An Unavailable fault says that there is no memory for more of the
// body, and an error of a deadline that it came too slowly.
func (in *Intake) Read(p []byte) (int, error) {
	in.begin()
	began := time.Now()
	n, err := in.body.Read(p)
	if refused := in.receive(n, time.Since(began), errors.Is(err, io.EOF)); refused != nil {
		return 0, refused
	}
	return n, err
}

// Close implements io.Closer.
func (in *Intake) Close() error { return in.body.Close() }

// begin sets the deadline of a read. The time in which a handler doesn't read isn't the client's.
// A connection without deadlines is a test's.
func (in *Intake) begin() {
	in.mu.Lock()
	defer in.mu.Unlock()
	_ = in.conn.SetReadDeadline(time.Now().Add(PaceTime - in.waited))
}

// Shared reports whether its connection has other requests beside it.
func (in *Intake) Shared() bool { return in.shared }

// receive counts bytes that have come.
func (in *Intake) receive(n int, waited time.Duration, whole bool) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.over {
		return http.ErrBodyReadAfterClose
	}
	in.came += int64(n)
	in.waited += waited
	if in.came >= PaceBytes || in.streamed && in.came >= paceStreamed {
		in.came, in.waited = 0, 0
	}
	if err := in.take(int64(n)); err != nil {
		return err
	}
	if whole {
		in.ended = true
		in.free(in.reserved)
		in.reserved = 0
	}
	if whole || in.shared { // HTTP/1.1 goes on reading, to see whether the client is there; HTTP/2 would end the body
		_ = in.conn.SetReadDeadline(time.Time{})
	}
	return nil
}

// take takes bytes at the gate, those first that are reserved. The caller holds the lock.
func (in *Intake) take(n int64) error {
	ahead := min(n, in.reserved)
	in.reserved -= ahead
	gate, holder := in.account.At()
	if n -= ahead; n == 0 || gate == nil || in.streamed {
		return nil
	}
	if err := gate.Acquire(holder, n); err != nil {
		return err
	}
	in.held += n
	return nil
}

// free gives back bytes that are held. The caller holds the lock.
func (in *Intake) free(n int64) {
	if n > 0 {
		gate, holder := in.account.At()
		gate.Release(holder, n)
		in.held -= n
	}
}

// Streamed returns a reader of a request's body, or of a part of it, for a handler that keeps
// nothing of what it reads: nothing of it counts, and it may come more slowly.
func Streamed(ctx context.Context, from io.Reader) io.Reader {
	if in := intakeOf(ctx); in != nil {
		return streamed{in, from}
	}
	return from
}

type streamed struct {
	in   *Intake
	from io.Reader
}

func (s streamed) Read(p []byte) (int, error) {
	s.in.stream(true)
	defer s.in.stream(false)
	return s.from.Read(p)
}

func (in *Intake) stream(on bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.streamed = on
}

// Unpaced returns a request's body as it comes, for a handler that passes it on at a pace of its
// own: nothing of it counts.
func Unpaced(r *http.Request) io.ReadCloser {
	if in := intakeOf(r.Context()); in != nil {
		return in.body
	}
	return r.Body
}

// Reserve waits until n bytes more may be held for a request's body, and takes them before they
// come. The error is an Unavailable fault where that can't be, or the cause of ctx's end.
func Reserve(ctx context.Context, n int64) error {
	in := intakeOf(ctx)
	if in == nil {
		return nil
	}
	gate, holder := in.account.At()
	if gate == nil {
		return nil
	}
	if err := gate.Wait(ctx, holder, n); err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.held += n
	in.reserved += n
	return nil
}
