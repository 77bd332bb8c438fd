package chat

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/conversation"
)

// patience is how long a turn waits for a server that is away.
const patience = 2 * time.Minute

// cancelled is the exit code of what was interrupted.
var cancelled = fault.ExitCode(fault.New(fault.Cancelled, ""))

// talk is a conversation.
type talk struct {
	env     *cli.Env
	server  *client.Client // for what a person waits for
	patient *client.Client // for a turn
	with    *peer
	in      reader
	view    *view

	interrupts <-chan os.Signal
	missed     chan struct{} // the server is away
	isAway     bool          // which was told
	run        string        // the newest turn; "": none
	message    string        // of it, where it is known
	stopped    bool          // the last thing that the user did is Ctrl-C
	over       bool          // the user leaves
	code       int           // of the first turn that failed
}

func newTalk(
	env *cli.Env, server *client.Client, with *peer, in reader, interrupts <-chan os.Signal,
) *talk {
	t := &talk{
		env: env, server: server, with: with, in: in, interrupts: interrupts, missed: make(chan struct{}, 1),
		view: &view{env: env, edited: isEditor(in)},
	}
	t.patient = server.Patient(patience, func(error) {
		select {
		case t.missed <- struct{}{}:
		default: // it is told already
		}
	})
	return t
}

// loop makes a turn of each line, until there are no more or the user leaves.
func (t *talk) loop(ctx context.Context) error {
	for !t.over {
		line, err := t.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			t.over = true
		case err != nil:
			t.refused(err)
			t.over = true
		default:
			t.take(ctx, line)
		}
	}
	if t.code != 0 && !t.view.edited {
		return ui.ExitError(t.code)
	}
	return nil
}

// take acts on a line between two turns.
func (t *talk) take(ctx context.Context, line string) {
	switch {
	case line == "":
	case line[0] == '/':
		t.command(ctx, line)
	default:
		t.turn(ctx, line)
	}
}

// typed is a line that was read.
type typed struct {
	line string
	err  error
}

// read reads a line beside its caller. stop ends that, and returns when it has ended.
func (t *talk) read(ctx context.Context, prompt string) (read <-chan typed, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan typed, 1)
	return done, cli.Beside(cancel, func() {
		line, err := t.in.line(ctx, prompt)
		done <- typed{strings.TrimSpace(line), err}
	})
}

// next returns the next line; "" when there is nothing to act on.
func (t *talk) next(ctx context.Context) (string, error) {
	read, stop := t.read(ctx, "> ")
	defer stop()
	select {
	case said := <-read:
		t.stopped = false
		return said.line, said.err
	case signal := <-t.interrupts:
		stop()
		t.over = t.stopped || leaves(signal) || !t.view.edited
		t.stopped = true
		switch {
		case !t.over:
			t.view.note("Ctrl-C once more, or Ctrl-D, leaves")
		case !t.view.edited:
			t.failed(cancelled)
		}
		return "", nil
	}
}

// leaves reports whether a signal means more than the turn.
func leaves(signal os.Signal) bool { return signal != os.Interrupt }

// turn gives the agent a message, and shows the turn to its end.
func (t *talk) turn(ctx context.Context, message string) {
	record, err := t.submit(ctx, message)
	if err != nil {
		t.refused(err)
		t.over = t.over || fault.Is(err, fault.Conflict) || !t.view.edited && fault.Is(err, fault.Unavailable)
		return
	}
	t.run, t.message = record.ID, message
	t.follow(ctx)
}

// submit sends a message, once, over all that happens to the connection. An interrupt gives up a while later: the
// answer of a server that is there comes in that time, and with it what can be cancelled.
func (t *talk) submit(ctx context.Context, message string) (api.Record, error) {
	wanted, giveUp := context.WithCancel(ctx)
	defer giveUp()
	patient, done := cli.Lingering(wanted, cli.SubmitGrace)
	defer done()
	type accepted struct {
		api.Record
		err error
	}
	sent := make(chan accepted, 1)
	go func() {
		record, err := t.patient.Runs.Submit(patient, t.with.submission(message))
		sent <- accepted{record, err}
	}()
	for {
		select {
		case got := <-sent:
			switch {
			case got.err != nil && wanted.Err() != nil:
				got.err = fault.Wrap(fault.Cancelled, got.err,
					"interrupted before the server said that it has the message")
			case got.err == nil && wanted.Err() != nil:
				_, got.err = t.server.Runs.Cancel(ctx, got.ID, "interrupted")
			}
			return got.Record, got.err
		case <-t.missed:
			t.awaits()
		case signal := <-t.interrupts:
			t.stopped, t.over = true, t.over || leaves(signal) || !t.view.edited
			giveUp()
		}
	}
}

// awaits says that the server is away, once in each time.
func (t *talk) awaits() {
	if !t.isAway {
		t.view.note("the server is away, waiting")
	}
	t.isAway = true
}

// refused tells what couldn't be done.
func (t *talk) refused(err error) {
	t.view.settle()
	t.env.Err.Fault(err)
	t.failed(fault.ExitCode(err))
}

// failed keeps the first exit code that isn't 0.
func (t *talk) failed(code int) {
	if t.code == 0 {
		t.code = code
	}
}

// resume takes up what there was before: the last message, and a turn that goes on.
func (t *talk) resume(ctx context.Context) {
	filter := t.with.filter()
	filter.Limit = 1
	for newest, err := range t.server.Runs.List(ctx, filter) {
		if err != nil {
			t.refused(err)
			return
		}
		record, err := t.server.Runs.Get(ctx, newest.ID)
		if err != nil {
			t.refused(err)
			return
		}
		t.run, t.message = record.ID, conversation.MessageIn(record)
		if record.FinishedAt == nil {
			t.view.note("the last turn goes on")
			t.follow(ctx)
		}
		return
	}
}
