package container

import (
	"context"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/agent"
	"github.com/agent-on-demand/aod/runtime"
)

// tellTime is the longest that an event waits for further ones to be stored with it.
const tellTime = 20 * time.Millisecond

// turnJournal is what a dialog has of its session: it keeps states, and writes to the program. What is
// written is staged first, and then stored that it was, in one transaction with the state that
// led to it. So a process that was killed has either done both, or its successor does; and what
// the program is told, which may be secret, is in its stdin alone.
type turnJournal struct {
	feed *runtime.Feed
	tail *runtime.Tail

	mu    sync.Mutex
	turn  *turn // that goes on; nil: none
	state agent.State
	told  []api.AgentEvent
	held  bool // state and told are to be stored
	timer *time.Timer
	err   error // of what the timer stored
	off   bool
}

// connect gives the journal to a turn; nil: to none.
func (w *turnJournal) connect(t *turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn, w.err = t, nil
	w.held, w.told = false, nil
	if t != nil {
		w.state = t.container.talk.Agent
	}
}

// cut ends the journal: nothing is stored or written any more.
func (w *turnJournal) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = true
	w.stopTimer()
}

func (w *turnJournal) stopTimer() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// Keep implements agent.Listener. A state that says what is written next is stored with that;
// others are stored soon.
func (w *turnJournal) Keep(_ context.Context, s agent.State, events []agent.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.broken(); err != nil {
		return err
	}
	written := s.Pending != w.state.Pending && s.Pending != "" || s.Asking == "" && w.state.Asking != ""
	w.state, w.held = s, true
	w.told = append(w.told, toldOf(events)...)
	switch {
	case written:
		w.stopTimer()
	case w.timer == nil:
		w.timer = time.AfterFunc(tellTime, w.tell)
	}
	return nil
}

// Again implements agent.Listener: what comes next may go on with a secret that began before.
func (w *turnJournal) Again(e agent.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turn != nil {
		w.turn.run.ToldAgain(toldOf([]agent.Event{e})...)
	}
}

func (w *turnJournal) broken() error {
	switch {
	case w.off || w.turn == nil:
		return runtime.ErrDetach
	default:
		return w.err
	}
}

// tell stores what is held because nothing was written.
func (w *turnJournal) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil || w.broken() != nil {
		return
	}
	w.timer = nil
	w.err = w.store(0)
}

// store stores what is held, and how many bytes are staged for the program. It is called with
// the lock held.
func (w *turnJournal) store(staged int) error {
	if !w.held && staged == 0 {
		return nil
	}
	t := w.turn
	t.container.talk.Agent, t.container.talk.Staged, t.container.talk.At = w.state, int64(staged), w.feed.Len()
	if w.state.Pending != "" {
		t.container.talk.Told = t.run.Session.Turn
	}
	told := w.told
	w.held, w.told = false, nil
	return t.container.keep(told...)
}

// Write implements io.Writer for the program's stdin: it takes one whole message.
func (w *turnJournal) Write(message []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.broken(); err != nil {
		return 0, err
	}
	w.stopTimer()
	if w.err = w.give(message); w.err != nil {
		return 0, w.err
	}
	return len(message), nil
}

func (w *turnJournal) give(message []byte) error {
	if err := w.feed.Stage(message); err != nil {
		return err
	}
	if err := w.store(len(message)); err != nil {
		return err
	}
	w.tail.Hurry()
	return w.feed.Give(int64(len(message)))
}

// Close implements io.Closer. The program's stdin stays open until its end.
func (w *turnJournal) Close() error { return nil }

// flush stores what is held. It is called when the dialog does nothing.
func (w *turnJournal) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.broken(); err != nil {
		return err
	}
	w.stopTimer()
	return w.store(0)
}

// rest takes what was told and isn't stored yet, at the end of a turn: the caller stores it.
func (w *turnJournal) rest() ([]api.AgentEvent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.broken(); err != nil {
		return nil, err
	}
	w.stopTimer()
	told := w.told
	w.held, w.told = false, nil
	return told, nil
}

// Permit implements agent.Listener.
func (w *turnJournal) Permit(ctx context.Context, p agent.Permission) (option string, err error) {
	if err := w.flush(); err != nil {
		return "", err
	}
	w.mu.Lock()
	t := w.turn
	w.mu.Unlock()
	if t == nil {
		return "", runtime.ErrDetach
	}
	option, err = t.approver.permit(t.ctx, p)
	if t.isStopped() {
		<-ctx.Done() // the dialog tells the program to stop once it hears of it
		return "", context.Cause(ctx)
	}
	return option, err
}

func toldOf(events []agent.Event) []api.AgentEvent {
	told := make([]api.AgentEvent, 0, len(events))
	for _, e := range events {
		told = append(told, api.AgentEvent{Kind: string(e.Kind), Text: e.Text, ID: e.ID, ToolNews: e.Tool})
	}
	return told
}
