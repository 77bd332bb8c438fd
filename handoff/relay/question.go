package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/wire/jsonrpc"
)

// question is a request of the client's that waits for its answer.
type question struct {
	id    []byte
	tool  string // that it calls, the beginning of its name; "" is none
	list  bool   // of the tools
	asked time.Time
	timer *time.Timer // of a call; nil: it has no limit

	ended  chan struct{} // closed when it is over
	taken  chan struct{} // closed when the server has it, or won't get it
	passed bool          // the server has it; set before
}

func newQuestion(m message) *question {
	return &question{
		id: bytes.Clone(m.id), list: m.method == methodList, ended: make(chan struct{}),
		taken: make(chan struct{}),
	}
}

func (q *question) stop() {
	if q.timer != nil {
		q.timer.Stop()
	}
}

const (
	maxPending = 1000 // questions of one session
	maxCalls   = 1000 // that are remembered one by one
)

// tally is what is remembered of calls.
type tally struct {
	calls       []api.ToolCall
	all, failed int
}

// enter remembers a question. It returns why that can't be.
func (s *Session) enter(q *question) *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := jsonrpc.Key(q.id)
	switch {
	case s.err != nil:
		return &failure{Code: codeServer, Message: "the session is over: " + reason(s.err)}
	case s.pending[key] != nil:
		return &failure{Code: codeRequest, Message: "a request with this id waits for its answer already"}
	case len(s.pending) >= maxPending:
		return &failure{
			Code:    codeServer,
			Message: fmt.Sprintf("%d requests wait for their answers already", maxPending),
		}
	}
	q.asked = time.Now()
	if q.tool != "" && s.opts.Timeout > 0 {
		q.timer = time.AfterFunc(s.opts.Timeout, func() { s.expire(q) })
	}
	s.pending[key] = q
	return nil
}

// leave returns the question of an answer, which is over then; nil: nobody asked.
func (s *Session) leave(m message) *question {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.pending[jsonrpc.Key(m.id)]
	if q == nil {
		return nil
	}
	failed := m.failure != nil || string(field(m.result, "isError")) == "true"
	s.over(q, failed)
	return q
}

// over counts the end of a question. The lock is held.
func (s *Session) over(q *question, failed bool) {
	delete(s.pending, jsonrpc.Key(q.id))
	q.stop()
	close(q.ended)
	select {
	case s.answer <- struct{}{}:
	default: // the last one is not noticed yet
	}
	if q.tool == "" {
		return
	}
	s.tally.all++
	if failed {
		s.tally.failed++
	}
	if len(s.tally.calls) < maxCalls {
		ms := math.Round(float64(time.Since(q.asked).Microseconds())) / 1000
		s.tally.calls = append(s.tally.calls, api.ToolCall{Tool: q.tool, MS: ms, Error: failed})
	}
}

// hand gives the server a question, unless that is over before the server takes it.
func (s *Session) hand(ctx context.Context, q *question, text []byte) error {
	defer close(q.taken)
	err := s.pass(ctx, q.ended, text)
	if errors.Is(err, errOver) {
		return nil
	}
	q.passed = err == nil
	return err
}

// expire answers a call that took too long. A server that has it is told when it reads again, after
// the call: it would do for nobody what it isn't told of.
func (s *Session) expire(q *question) {
	s.mu.Lock()
	waits := s.pending[jsonrpc.Key(q.id)] == q
	if waits {
		s.over(q, true)
	}
	s.mu.Unlock()
	if !waits {
		return
	}
	// a client that left needs none
	_ = s.toClient(refusal(q.id,
		failure{Code: codeTimeout, Message: fmt.Sprintf("the call took more than %v", s.opts.Timeout)}))
	if <-q.taken; q.passed {
		// the session may end before
		_ = s.pass(context.Background(), nil,
			fmt.Appendf(nil,
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"timeout"}}`,
				q.id))
	}
}
