package workers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	mcprelay "github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// talk is a client's session with an MCP server that runs at a worker. Its streams go there and come from there in
// pieces, each with its place: one that was lost comes again.
type talk struct {
	session *mcprelay.Session
	in      hose           // what the server's program reads
	said    *io.PipeReader // what it writes
	out     *io.PipeWriter

	telling sync.Mutex
	count   int64 // bytes that it has written
	over    chan struct{}
}

// talkOf returns the talk of a run with an MCP server; nil: it isn't one.
func talkOf(r *run.Run) *talk {
	session, is := r.Extra.(*mcprelay.Session)
	if !is {
		return nil
	}
	t := &talk{session: session, over: make(chan struct{})}
	t.said, t.out = io.Pipe()
	return t
}

// begin passes messages on. What the program writes that isn't one is a line of its log.
func (t *talk) begin(r *run.Run) {
	go func() { // end waits for it
		defer close(t.over)
		t.session.Talk(&t.in, t.said, func(line []byte) {
			r.Log(runtime.LogLine{Time: time.Now().UTC(), Stream: "stdout", Text: string(line)})
		})
		_ = t.said.Close() // what it still writes is dropped
	}()
}

// end ends it, and notes the calls that there were.
func (t *talk) end(r *run.Run) {
	_ = t.out.Close() // never fails
	_ = t.in.Close()  // likewise
	<-t.over
	r.Record.ToolCalls, _, _ = t.session.Calls()
}

// take takes what the program has written from a place on. What came before is passed over.
func (t *talk) take(s wire.Said) error {
	t.telling.Lock()
	defer t.telling.Unlock()
	if s.Offset > t.count {
		return fault.New(fault.Conflict, "%d bytes have come of what the program writes", t.count)
	}
	fresh := s.Bytes[min(t.count-s.Offset, int64(len(s.Bytes))):]
	n, err := t.out.Write(fresh)
	t.count += int64(n)
	if errors.Is(err, io.ErrClosedPipe) { // nobody reads it any more
		t.count, err = s.Offset+int64(len(s.Bytes)), nil
	}
	if s.Ended {
		_ = t.out.Close() // never fails
	}
	return err
}

// heard is what a worker gets that has so many bytes: more of them, or the session's end.
func (t *talk) heard(ctx context.Context, has wire.Hear) (h wire.Heard) {
	more := t.in.more(has.Offset)
	if has.Ended {
		more = nil
	}
	select {
	case <-more:
	case <-t.session.Done():
	case <-ctx.Done():
	}
	h.Bytes, h.Ended = t.in.from(has.Offset)
	if len(h.Bytes) == 0 && pause.Over(t.session.Done()) {
		h.Over = overOf(t.session)
	}
	return h
}

// overOf is what a worker is told of a session that is over.
func overOf(s *mcprelay.Session) *wire.TalkOver {
	calls, all, failed := s.Calls()
	over := &wire.TalkOver{Well: s.EndedWell(), Calls: calls, All: all, Failed: failed}
	if err := s.Err(); !over.Well && !errors.Is(err, mcprelay.ErrServerEnded) {
		public := fault.Public(err)
		over.Message, over.Hint = public.Msg, public.Hint
	}
	return over
}

// hearTime is how long a worker waits for something that its program is to read, before it asks again.
const hearTime = 20 * time.Second

func (h face) stdin(w http.ResponseWriter, r *http.Request, l *lease) error {
	var asked wire.Hear
	if err := readTalk(r, l, &asked); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), hearTime)
	defer cancel()
	return reply(w, l.talk.heard(ctx, asked))
}

func (h face) stdout(w http.ResponseWriter, r *http.Request, l *lease) error {
	var said wire.Said
	if err := readTalk(r, l, &said); err != nil {
		return err
	}
	if err := l.talk.take(said); err != nil {
		return err
	}
	return done(w)
}

// readTalk reads a message of a run with an MCP server, when its program runs.
func readTalk(r *http.Request, l *lease, into any) error {
	if l.talk == nil {
		return errVoid
	}
	if err := read(r, wire.MaxMessage, into); err != nil {
		return err
	}
	return untilOver(r.Context(), l.relay.open)
}

// mostAhead is how many bytes wait for a worker, at most.
const mostAhead = 256 << 10

// hose is an io.WriteCloser whose bytes are kept until whoever reads them says that they have come. The zero hose is
// empty.
type hose struct {
	mu    sync.Mutex
	kept  []byte
	begin int64 // place of the first of them
	ended bool
	moved pause.Notifier
}

// Write implements io.Writer. It waits where too much is kept.
func (s *hose) Write(p []byte) (n int, err error) {
	for n < len(p) {
		moved := s.moved.After()
		s.mu.Lock()
		if s.ended {
			s.mu.Unlock()
			return n, io.ErrClosedPipe
		}
		room := min(mostAhead-len(s.kept), len(p)-n)
		s.kept = append(s.kept, p[n:n+room]...)
		s.mu.Unlock()
		if n += room; room > 0 {
			s.moved.Notify()
			continue
		}
		<-moved
	}
	return n, nil
}

// Close implements io.Closer.
func (s *hose) Close() error {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.moved.Notify()
	return nil
}

// more returns a channel that is closed when there are bytes after a place, or the end.
func (s *hose) more(offset int64) <-chan struct{} {
	moved := s.moved.After()
	if some, ended := s.from(offset); len(some) == 0 && !ended {
		return moved
	}
	return already()
}

// from returns the bytes after a place, of which those before have come, and whether there will be no more.
func (s *hose) from(offset int64) (some []byte, ended bool) {
	s.mu.Lock()
	came := min(max(offset-s.begin, 0), int64(len(s.kept)))
	s.kept, s.begin = s.kept[came:], s.begin+came // what is appended later lies behind some
	some, ended = s.kept, s.ended
	s.mu.Unlock()
	if came > 0 {
		s.moved.Notify()
	}
	return some, ended
}
