package container

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// talk is a session that is connected with the streams of a container.
type talk struct {
	session *relay.Session
	stdin   *io.PipeReader // what the container reads
	toStdin *io.PipeWriter
	stdout  *io.PipeWriter // what the container writes
	said    *io.PipeReader
}

func newTalk(s *relay.Session) *talk {
	t := &talk{session: s}
	t.stdin, t.toStdin = io.Pipe()
	t.said, t.stdout = io.Pipe()
	return t
}

// begin passes messages on until end is called. The end of ctx ends the session.
func (t *talk) begin(ctx context.Context, log *runtime.Log) (end func()) {
	var talking sync.WaitGroup
	talking.Go(func() {
		t.session.Talk(t.toStdin, t.said,
			func(line []byte) { log.Add("stdout", append(line[:len(line):len(line)], '\n')) })
		_ = t.said.Close() // what the container still writes is dropped
	})
	stop := context.AfterFunc(ctx, func() {
		t.session.End(whyOver(context.Cause(ctx)))
		t.close()
	})
	return func() {
		stop()
		t.close()
		talking.Wait()
	}
}

// whyOver is what a client is told of the end of its session's run.
func whyOver(cause error) error {
	if errors.Is(cause, run.ErrTimeout) || errors.Is(cause, run.ErrDeadline) {
		return fault.Wrap(fault.Deadline, cause, "its time is up")
	}
	return fault.Wrap(fault.Unavailable, cause, "the session was ended")
}

func (t *talk) close() {
	_ = t.stdout.Close()
	_ = t.stdin.Close()
}

// errSessionOver is why a container is stopped whose session is over.
var errSessionOver = errors.New("the session is over")

// whileTalking passes the messages of a session on until end is called, and returns a context that
// also ends with the session.
func (x *execution) whileTalking(ctx context.Context) (during context.Context, end func()) {
	if x.talk == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-x.talk.session.Done():
			cancel(errSessionOver)
		case <-ctx.Done():
		}
	}()
	left := x.talk.begin(ctx, x.attempt.log)
	return ctx, func() {
		left()
		cancel(nil)
	}
}

// lending calls wait, and gives the run's slot to others meanwhile if a session goes on: it
// mostly waits for its client.
func (a *attempt) lending(wait func()) {
	if a.x.talk == nil {
		wait()
		return
	}
	a.api.calls.Lend(context.Background(), wait)
}
