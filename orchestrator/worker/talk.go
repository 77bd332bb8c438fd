package worker

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
)

// farTalk is the session of a client with an MCP server here: the client is at the server. It implements
// container.Talk.
type farTalk struct {
	held *held
	link link            // whose messages have connections of their own
	life context.Context //nolint:containedctx // of the session in this process
	stop context.CancelCauseFunc
	done chan struct{}

	mu   sync.Mutex
	over wire.TalkOver
	err  error // why it is over; nil: it isn't
}

func newFarTalk(h *held) *farTalk {
	t := &farTalk{held: h, link: *h.worker.link, done: make(chan struct{})}
	t.link.control = t.link.relays
	t.life, t.stop = context.WithCancelCause(h.life)
	return t
}

// Talk connects the session with a program, until that has ended or the session is over.
func (t *farTalk) Talk(stdin io.WriteCloser, stdout io.Reader, _ func(line []byte)) {
	var hearing sync.WaitGroup
	hearing.Go(func() { t.hear(stdin) })
	t.tell(stdout)
	hearing.Wait()
}

// hear passes on what the program is to read, until the session is over.
func (t *farTalk) hear(stdin io.WriteCloser) {
	defer func() { _ = stdin.Close() }() // the program may have ended
	for has := (wire.Hear{}); ; {
		var heard wire.Heard
		err := t.ask(wire.Stdin, has, &heard)
		if err != nil {
			t.End(err)
			return
		}
		_, _ = stdin.Write(heard.Bytes) // it may be deaf: then its output ends, too
		has.Offset += int64(len(heard.Bytes))
		if has.Ended = heard.Ended; has.Ended {
			_ = stdin.Close() // likewise
		}
		if heard.Over != nil {
			t.finish(*heard.Over)
			return
		}
	}
}

// tell passes on what the program writes, until it writes no more.
func (t *farTalk) tell(stdout io.Reader) {
	piece := make([]byte, 64<<10)
	for at := int64(0); ; {
		n, err := stdout.Read(piece)
		said := wire.Said{Offset: at, Bytes: piece[:n], Ended: err != nil}
		if failed := t.ask(wire.Stdout, said, nil); failed != nil || err != nil {
			return
		}
		at += int64(n)
	}
}

func (t *farTalk) ask(part string, message, answer any) error {
	return t.link.repeat(t.life, "talk", func() error {
		return t.link.call(t.life, leasePath(t.held.lease(), part), message, answer)
	})
}

// finish notes how the session ended.
func (t *farTalk) finish(over wire.TalkOver) {
	err := error(relay.ErrServerEnded)
	switch {
	case over.Well:
		err = relay.ErrClientLeft
	case over.Message != "":
		err = fault.New(fault.Unavailable, "%s", over.Message).WithHint("%s", over.Hint)
	}
	t.mu.Lock()
	t.over = over
	t.mu.Unlock()
	t.End(err)
}

// End ends the session here. The first cause counts.
func (t *farTalk) End(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = cause
		close(t.done)
		t.stop(cause)
	}
}

// Done is closed when the session is over.
func (t *farTalk) Done() <-chan struct{} { return t.done }

// Err returns why it is.
func (t *farTalk) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// EndedWell reports whether it is over because nobody wanted more of it.
func (t *farTalk) EndedWell() bool { return errors.Is(t.Err(), relay.ErrClientLeft) }

// Calls returns the calls that there were.
func (t *farTalk) Calls() (first []api.ToolCall, all, failed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over.Calls, t.over.All, t.over.Failed
}
