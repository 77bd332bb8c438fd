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
	// hear says what a message means, which was read as JSON. said has what was said since the
	// pending request; where s has none, nothing is an answer.
	hear(document any, s State, said *speech) meaning
	// ends reports whether a message would end the turn that can't be read: of its fields it has
	// the first ones.
	ends(fields map[string]string, s State) bool
	// stop is the message that ends the turn early; nil: there is none.
	stop(s State) []byte
}

// meaning is what a message of the program means.
type meaning struct {
	strange bool // it isn't of the protocol
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
var strange = meaning{strange: true}

// told is what is told of a strange message.
func (m message) told() string {
	if m.tooLong {
		return "a message of more than 8 MiB"
	}
	return fault.OneLine(strings.ToValidUTF8(string(m.body[:min(len(m.body), maxStrange)]), "\uFFFD"))
}

// speech is what was said since the pending request.
type speech struct {
	text   strings.Builder
	parted bool   // what is said next is another message
	id     string // of the message that goes on; "": it has none
}

// add has more of what was said. An id that differs, where there are ids, says that it is another
// message; a blank line parts that from the one before.
func (s *speech) add(text, id string) {
	if text == "" {
		return
	}
	another := s.parted
	if id != "" && s.id != "" {
		another = id != s.id
	}
	if another && s.text.Len() > 0 {
		s.text.WriteString("\n\n")
	}
	s.text.WriteString(text)
	s.parted, s.id = false, id
}

// part ends the message that goes on, unless what follows has its id.
func (s *speech) part() { s.parted = true }

// end ends the message that goes on.
func (s *speech) end() { s.parted, s.id = true, "" }

// turn is what a dialog knows of the turn that it is in.
type turn struct {
	*dialog
	prompt   string
	events   []Event // that aren't kept yet
	told     int     // events since the pending request
	said     speech
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
	var err error
	if s.Border, err = t.written(); err != nil {
		return err
	}
	if err := t.keep(ctx, s); err != nil {
		return err
	}
	t.said = speech{}
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

// understand says what a message means. One that the program wrote before it was asked answers
// nothing, and what it says isn't part of the answer.
func (t *turn) understand(m message) meaning {
	if len(m.body) == 0 {
		return meaning{}
	}
	s, said := t.state, &t.said
	early := t.at+m.size <= s.Border
	if early {
		s.Pending, said = "", &speech{}
	}
	h := t.heard(m, s, said)
	if h.strange {
		h.events = []Event{{Kind: EventStrange, Text: m.told()}}
	}
	for i := range h.events {
		if early && h.events[i].Kind == EventText {
			h.events[i].Kind = EventProgress
		}
	}
	return h
}

// heard is what a message means to the protocol. Where the end of the turn can't be read, that is
// its end: no other one comes.
func (t *turn) heard(m message, s State, said *speech) meaning {
	why := "it has more than 8 MiB"
	if !m.tooLong {
		document, err := decode(m.body)
		if err == nil {
			return t.speaker.hear(document, s, said)
		}
		why = "it isn't JSON" + placeOf(err)
	}
	if s.Pending != "" && t.speaker.ends(fieldsOf(m.body), s) {
		return ended(programError("the end of the turn can't be read: %s", why))
	}
	return strange
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
	written  func() (int64, error)
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
