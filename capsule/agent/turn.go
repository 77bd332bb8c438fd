package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Bounds of a turn, and of its events.
const (
	maxEvents    = 20_000 // of a turn; later ones are left out, the reply has all text
	maxEventText = 64 << 10
	maxEventRaw  = 64 << 10
	maxStrange   = 1 << 10 // bytes that are told of a line that isn't of the protocol
	maxRequests  = 1000    // of the program, in a turn
	maxID        = 1 << 10
	maxOptions   = 32
)

// ProgramError says how a program failed a turn: by an error that it answered with, or by
// breaking the rules of its protocol. Its message has at most a short quote of the program's.
type ProgramError struct{ Msg string }

func (e *ProgramError) Error() string { return e.Msg }

func programError(format string, args ...any) *ProgramError {
	return &ProgramError{Msg: fmt.Sprintf(format, args...)}
}

// step is a request of ours, and the last part of its id.
type step string

// stepPrompt is the one that every protocol has; its answer is the end of the turn.
const stepPrompt step = "prompt"

// speaker is what differs between the protocols. It makes messages and says what one means.
type speaker interface {
	// first is the step with which a turn begins.
	first(s State) step
	// request is the message of a step. Its id is s.Pending.
	request(to step, s State, prompt string) []byte
	// hear says what a message means. said has what was said since the pending request.
	decode(body []byte, s State, said *strings.Builder) meaning
	// stop is the message that ends the turn early; nil: there is none.
	stop(s State) []byte
}

// meaning is what a message of the program means.
type meaning struct {
	events  []Event
	session string // the program's id of the session
	send    []byte // an answer that needs no thought
	ask     *asked // a permission that it wants
	next    step   // the pending request was answered, and this one follows
	end     *ending
}

// ending is the end of a turn.
type ending struct {
	reply Reply
	err   error // it failed
}

// ended is the end of a turn that failed.
func ended(err error) meaning { return meaning{end: &ending{err: err}} }

// strange is a message that isn't of the protocol.
func strange(body []byte) meaning {
	begins := strings.ToValidUTF8(string(body[:min(len(body), maxStrange)]), "\uFFFD")
	return meaning{events: []Event{{Kind: EventStrange, Text: fault.OneLine(begins)}}}
}

// turn is what a dialog knows of the turn that it is in.
type turn struct {
	*dialog
	prompt   string
	events   []Event // that aren't kept yet
	told     int     // events since the pending request
	said     strings.Builder
	requests []string // of the program, by id, since the pending request
	open     *asked   // the one that waits for its answer
	stopping bool
}

// lead begins the turn, unless another process did, and hears the program until its end.
func (t *turn) lead(ctx context.Context) (Reply, error) {
	if t.state.Pending == "" {
		if err := t.request(ctx, t.speaker.first(t.state), t.state); err != nil {
			return Reply{}, err
		}
	}
	for {
		if err := t.pause(ctx); err != nil {
			return Reply{}, err
		}
		batch, err := t.batch(ctx)
		if err != nil {
			return Reply{}, err
		}
		if end, err := t.read(ctx, batch); err != nil {
			return Reply{}, err
		} else if end != nil {
			return end.reply, end.err
		}
	}
}

// read acts on messages until one ends the turn. The others are for later.
func (t *turn) read(ctx context.Context, batch []message) (*ending, error) {
	for i, m := range batch {
		t.rest = batch[i:]
		if !t.replays() {
			if err := t.permit(ctx); err != nil {
				return nil, err
			}
		}
		t.rest = batch[i+1:]
		if end, err := t.take(ctx, m); end != nil || err != nil {
			return end, err
		}
	}
	return nil, nil
}

// pause keeps what was heard before the program is waited for. What an earlier process asked a
// person is asked by this one, too.
func (t *turn) pause(ctx context.Context) error {
	if t.replays() {
		return nil
	}
	if err := t.permit(ctx); err != nil || len(t.events) == 0 {
		return err
	}
	return t.keep(ctx, t.state)
}

// replays reports whether the dialog is among what an earlier process acted on.
func (d *dialog) replays() bool { return d.at < d.replayed }

// batch returns the messages that come next.
func (t *turn) batch(ctx context.Context) ([]message, error) {
	if batch := t.rest; len(batch) > 0 {
		t.rest = nil
		return batch, nil
	}
	return t.out.next(ctx)
}

// request makes the next request to the program: it is kept, and then written.
func (t *turn) request(ctx context.Context, to step, s State) error {
	s.Next++
	s.Pending = "aod-" + strconv.FormatInt(s.Next, 10) + "-" + string(to)
	s.Since = t.at
	if err := t.keep(ctx, s); err != nil {
		return err
	}
	t.said.Reset()
	t.requests, t.told = nil, 0
	return t.in.write(ctx, t.speaker.request(to, t.state, t.prompt))
}

// keep has the listener keep a state and all events. All that was read is behind it.
func (t *turn) keep(ctx context.Context, s State) error {
	s.Offset = t.at
	if err := t.listener.Keep(ctx, s, t.events); err != nil {
		return err
	}
	t.state, t.events = s, nil
	return nil
}

// take acts on a message, after it was kept. What it returns is nil while the turn goes on.
func (t *turn) take(ctx context.Context, m message) (*ending, error) {
	replayed := t.replays()
	if t.at+m.size-t.state.Since > MaxTurn {
		t.broken = true
		return nil, programError("the program wrote more than %d MiB for one request", MaxTurn>>20)
	}
	h := t.understand(m)
	if h.end != nil {
		return h.end, t.end(ctx, m, h.session)
	}
	t.at += m.size
	t.note(h.events, replayed)
	switch {
	case h.ask != nil:
		return nil, t.asks(ctx, *h.ask, replayed)
	case h.send != nil:
		return nil, t.refuse(ctx, h.send, replayed)
	case replayed:
		return nil, nil
	case h.next != "":
		s := t.state
		s.Opened = h.next == stepPrompt
		s.Session = cmp.Or(h.session, s.Session)
		return nil, t.request(ctx, h.next, s)
	case h.session != "" && h.session != t.state.Session:
		s := t.state
		s.Session = h.session
		return nil, t.keep(ctx, s)
	}
	return nil, nil
}

// understand says what a message means.
func (t *turn) understand(m message) meaning {
	switch {
	case m.tooLong:
		return meaning{events: []Event{{Kind: EventStrange, Text: "a message of more than 8 MiB"}}}
	case len(m.body) == 0:
		return meaning{}
	}
	return t.speaker.decode(m.body, t.state, &t.said)
}

// end ends the turn with a message that isn't kept as acted on: a process that goes on with the
// turn hears it again, until the caller has stored the turn's end.
func (t *turn) end(ctx context.Context, m message, session string) error {
	if len(t.events) > 0 {
		if err := t.keep(ctx, t.state); err != nil {
			return err
		}
	}
	t.at += m.size
	t.state.Offset, t.state.Since = t.at, t.at
	t.state.Pending, t.state.Asking = "", ""
	t.state.Session = cmp.Or(session, t.state.Session)
	return nil
}

// note adds events, bounded, unless an earlier process has told them.
func (t *turn) note(events []Event, replayed bool) {
	for _, e := range events {
		if t.told++; t.told > maxEvents {
			continue
		}
		e.Text = fault.Cut(e.Text, maxEventText)
		if len(e.ID) > maxID {
			e.ID = ""
		}
		if len(e.Raw) > maxEventRaw {
			e.Raw = nil
		}
		if replayed {
			t.listener.Again(e)
		} else {
			t.events = append(t.events, e)
		}
	}
}

// stop tells the program to end the turn, and waits a while for that.
func (t *turn) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.wait)
	defer cancel()
	if t.stopping = true; !t.prompted() {
		return
	}
	message := t.speaker.stop(t.state)
	if message == nil {
		return
	}
	if t.in.write(ctx, message) != nil {
		return
	}
	_, _ = t.lead(ctx) // the caller says why the turn was stopped
}

// prompted reports whether the program has a prompt to answer.
func (d *dialog) prompted() bool {
	return strings.HasSuffix(d.state.Pending, "-"+string(stepPrompt))
}

// dialog is a Dialog over a speaker.
type dialog struct {
	speaker  speaker
	in       *input
	out      *output
	listener Listener
	wait     time.Duration
	state    State
	replayed int64     // what of stdout an earlier process has acted on
	at       int64     // how much of it this one has
	rest     []message // that were read and not heard
	broken   bool
	closing  sync.Once
}

// Turn implements Dialog.
func (d *dialog) Turn(ctx context.Context, prompt string) (Reply, error) {
	if d.broken || d.in.broken {
		return Reply{}, ErrProgramEnded
	}
	if ctx.Err() != nil && d.state.Pending == "" {
		return Reply{}, context.Cause(ctx)
	}
	t := &turn{dialog: d, prompt: prompt}
	reply, err := t.lead(ctx)
	gone := errors.Is(err, ErrProgramEnded)
	if err != nil && ctx.Err() != nil && !gone {
		t.stop(ctx)
		reply, err = Reply{}, context.Cause(ctx)
	}
	d.broken = d.broken || gone || d.prompted()
	return reply, err
}

// State implements Dialog.
func (d *dialog) State() State { return d.state }

// Reusable implements Dialog.
func (d *dialog) Reusable() bool { return !d.broken && !d.in.broken }

// Close implements Dialog.
func (d *dialog) Close() {
	d.closing.Do(func() {
		d.out.close()
		d.in.close()
	})
}
