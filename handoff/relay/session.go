package relay

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/pause"
)

// Options are the rules of a session.
type Options struct {
	Tools   []string      // that are shown and may be called; nil: all
	Timeout time.Duration // of a call; 0: none
	Idle    time.Duration // without a message after which the session ends; 0: never
	Spend   func() error  // counts a call, or refuses it with a fault; nil: nobody counts
}

// Session is one client's talk with one server. Its methods may be called at the same time.
type Session struct {
	opts     Options
	sending  sync.Mutex
	send     func(message) error
	toServer chan passed
	hungUp   chan struct{} // closed when the client will send nothing more
	hangUp   func()
	quiet    chan struct{} // closed when it has hung up and nothing is left to be answered
	answer   chan struct{} // has a value when a question was answered
	begun    chan struct{} // closed when there is a server
	done     chan struct{}

	mu      sync.Mutex
	pending map[string]*question
	idle    *time.Timer
	err     error
	tally   tally
}

// The ways in which a session ends well.
var (
	ErrClientLeft = errors.New("its client left")
	ErrIdle       = errors.New("nobody said anything for a while")
	ErrDisplaced  = errors.New("its client has begun further sessions since it said anything")
)

// New returns a session that passes what the server says to send, one message at a time. An
// error of send ends the session.
func New(opts Options, send func(text []byte) error) *Session {
	return newSession(opts, func(m message) error { return send(m.text) })
}

// newSession is New for who looks at messages: they are read once.
func newSession(opts Options, send func(message) error) *Session {
	s := &Session{
		opts: opts, send: send, toServer: make(chan passed), hungUp: make(chan struct{}), quiet: make(chan struct{}),
		begun: make(chan struct{}), done: make(chan struct{}),
		answer: make(chan struct{}, 1), pending: map[string]*question{},
	}
	s.hangUp = sync.OnceFunc(func() { close(s.hungUp); go s.endAnswered() })
	if opts.Idle > 0 {
		s.mu.Lock() // it may go off at once
		defer s.mu.Unlock()
		s.idle = time.AfterFunc(opts.Idle, s.endIdle)
	}
	return s
}

// HangUp says that the client will send nothing more. When what is left is answered the server
// hears the end of its stdin: many drop their work at that. Then the session is over.
func (s *Session) HangUp() { s.hangUp() }

const (
	lastAnswers = time.Minute            // for what is left when the client has hung up, where calls have no limit
	lastGrace   = 500 * time.Millisecond // for a server to end by itself
)

// endAnswered ends the session when nothing is left to be answered.
func (s *Session) endAnswered() {
	defer s.End(ErrClientLeft)
	patience := time.After(cmp.Or(s.opts.Timeout, lastAnswers))
	for s.asks() {
		select {
		case <-s.answer:
		case <-patience:
			return
		case <-s.done:
			return
		}
	}
	close(s.quiet)
	select {
	case <-time.After(lastGrace):
	case <-s.done:
	}
}

// asks reports whether a question waits for its answer.
func (s *Session) asks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) > 0
}

// Done is closed when the session is over.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err returns why the session is over; nil: it isn't.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// EndedWell reports whether the session is over because nobody wanted more of it.
func (s *Session) EndedWell() bool {
	err := s.Err()
	return errors.Is(err, ErrClientLeft) || errors.Is(err, ErrIdle) || errors.Is(err, ErrDisplaced)
}

// Beginning is closed when there is a server.
func (s *Session) Beginning() <-chan struct{} { return s.begun }

// Begun reports whether there is a server.
func (s *Session) Begun() bool { return pause.Over(s.begun) }

// Calls returns the calls so far: the first of them, and how many there were and failed.
func (s *Session) Calls() (first []api.ToolCall, all, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tally.calls, s.tally.all, s.tally.failed
}

// End ends the session. Only the first cause counts. Questions without an answer are answered
// with it, if the client takes that soon.
func (s *Session) End(cause error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = cause
	left := s.pending
	s.pending = map[string]*question{}
	for _, q := range left {
		q.stop()
	}
	if s.idle != nil {
		s.idle.Stop()
	}
	s.mu.Unlock()
	go func() {
		defer close(s.done)
		s.answerAll(left, cause)
	}()
}

// lastTime is how long a client may take for the answers at the end.
const lastTime = time.Second

func (s *Session) answerAll(left map[string]*question, cause error) {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for _, q := range left {
			if s.toClient(refusal(q.id,
				failure{Code: codeServer, Message: "the session is over: " + reason(cause)})) != nil {
				return
			}
		}
	}()
	select {
	case <-answered:
	case <-time.After(lastTime):
	}
}

// reason is what a client may know of a cause.
func reason(cause error) string {
	var known *fault.Error
	if errors.As(cause, &known) {
		return known.Msg
	}
	return cause.Error()
}

func (s *Session) toClient(m message) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.send(m)
}

// touch begins the time anew after which nobody said anything.
func (s *Session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil && s.err == nil {
		s.idle.Reset(s.opts.Idle)
	}
}

func (s *Session) endIdle() {
	if s.asks() {
		s.touch()
		return
	}
	s.End(ErrIdle)
}

// Talk connects the session with a server until stdout ends or the session is over. It is
// called once. What the server writes that isn't a message goes to noise.
func (s *Session) Talk(stdin io.WriteCloser, stdout io.Reader, noise func(line []byte)) {
	close(s.begun)
	ended := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { s.feed(stdin, ended) })
	err := s.listen(bufio.NewReaderSize(stdout, 64<<10), noise)
	close(ended)
	_ = stdin.Close()
	writer.Wait()
	switch {
	case !errors.Is(err, io.EOF):
		s.End(err)
	case pause.Over(s.quiet):
		s.End(ErrClientLeft)
	default:
		s.End(ErrServerEnded)
	}
}

// ErrServerEnded says that the server's output ended while the client was there.
var ErrServerEnded = fault.New(fault.Unavailable, "the server ended").WithHint("its log says more; begin a new session")

// feed writes messages to the server until nothing more is to come or nobody reads.
func (s *Session) feed(stdin io.WriteCloser, ended <-chan struct{}) {
	defer func() { _ = stdin.Close() }() // the server may have gone
	for {
		select {
		case message := <-s.toServer:
			_, err := stdin.Write(append(message.text[:len(message.text):len(message.text)], '\n'))
			message.release()
			if err != nil {
				return // its output ends as well, or it is deaf
			}
		case <-s.quiet:
			return
		case <-ended:
			return
		}
	}
}

func (s *Session) listen(stdout *bufio.Reader, noise func([]byte)) error {
	for {
		line, err := readLine(stdout)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			continue
		}
		if err := s.fromServer(line, noise); err != nil {
			return err
		}
	}
}

// errOver says that nobody wants the answer to a message any more.
var errOver = errors.New("it is over")

// pass gives the server a message, unless over is closed before the server takes it.
// What the server takes counts for the client until it has read it: that may be after the request.
func (s *Session) pass(ctx context.Context, over <-chan struct{}, message []byte) error {
	if err := s.Err(); err != nil {
		return err
	}
	release, err := bytegate.Hold(ctx, int64(len(message)))
	if err != nil {
		return err
	}
	if err := s.offer(ctx, over, passed{message, release}); err != nil {
		release()
		return err
	}
	return nil
}

// passed is a message on its way to the server.
type passed struct {
	text    []byte
	release func() // of its memory
}

func (s *Session) offer(ctx context.Context, over <-chan struct{}, message passed) error {
	select {
	case s.toServer <- message:
		return nil
	case <-over:
		return errOver
	case <-s.done:
		return s.Err()
	case <-s.hungUp:
		return ErrClientLeft
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func isFull(err error) bool { return errors.Is(err, bufio.ErrBufferFull) }
