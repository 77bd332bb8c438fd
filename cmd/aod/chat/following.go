package chat

import (
	"context"
	"os"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/questions"
	"github.com/agent-on-demand/aod/cmd/aod/runcmd"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// news is what comes of a turn.
type news struct {
	data     api.EventData
	question *api.Question // that is asked
	record   *api.Record   // at the end
	err      error         // there is no more
}

// hear sends what comes of the newest turn, to its end. stop ends that.
func (t *talk) hear(ctx context.Context) (<-chan news, func()) {
	ctx, cancel := context.WithCancel(ctx)
	heard := make(chan news)
	return heard, cli.Beside(cancel, func() {
		tell := func(n news) bool {
			select {
			case heard <- n:
				return n.err == nil
			case <-ctx.Done():
				return false
			}
		}
		follow := t.patient.Runs.Events
		if t.with.session == "" && t.env.Out.Terminal { // else the agent tells it, or only the answer is wanted
			follow = t.patient.Runs.EventsAndTokens
		}
		for event, err := range follow(ctx, t.run, 0) {
			n := news{err: err}
			if err == nil {
				n.data, _ = event.Decode() // what a newer server tells is left out
			}
			if asked, is := n.data.(api.QuestionEvent); is && asked.State == api.QuestionOpen {
				n.question = t.asked(ctx, asked.ID)
			}
			if !tell(n) {
				return
			}
		}
		record, err := t.patient.Runs.Get(ctx, t.run)
		tell(news{record: &record, err: err})
	})
}

// asked returns a question that is open; nil: it isn't any more, or can't be had.
func (t *talk) asked(ctx context.Context, id string) *api.Question {
	q, err := t.patient.Questions.Get(ctx, id)
	if err != nil || q.Answered != nil || q.ClosedAt != nil {
		return nil
	}
	return &q
}

// follow shows the newest turn to its end.
func (t *talk) follow(ctx context.Context) {
	f := following{talk: t, results: make(chan result)}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	heard, end := t.hear(ctx)
	defer end()
	defer func() { f.stopAsking() }()
	t.view.begin()
	for {
		select {
		case n := <-heard:
			t.isAway = false
			if f.take(ctx, n) {
				return
			}
		case said := <-f.said:
			if f.answered(ctx, said); t.over {
				return
			}
		case r := <-f.results:
			f.done(ctx, r)
		case <-t.missed:
			t.awaits()
		case signal := <-t.interrupts:
			if f.interrupted(ctx, signal) {
				return
			}
		}
	}
}

// following is a turn that is shown.
type following struct {
	*talk
	open       []api.Question // that wait for their answers, the first asked first
	said       <-chan typed   // the answer to the first one; nil: nobody is asked
	stop       func()         // of reading that
	cancelling bool           // the server hasn't said yet that it cancels the turn
	results    chan result
}

// result is the end of a request that was made beside the turn.
type result struct {
	ofCancel bool
	err      error
}

// beside makes a request beside the turn.
func (f *following) beside(ctx context.Context, ofCancel bool, do func(context.Context) error) {
	go func() { // it ends with the turn
		r := result{ofCancel, do(ctx)}
		select {
		case f.results <- r:
		case <-ctx.Done():
		}
	}()
}

// take acts on what comes. It returns true at the end.
func (f *following) take(ctx context.Context, n news) (ended bool) {
	switch {
	case n.err != nil:
		f.stopAsking()
		f.refused(n.err)
		f.over = f.over || !f.view.edited
		return true
	case n.record != nil:
		f.stopAsking()
		f.view.end(*n.record)
		f.with.heard(f.message, *n.record)
		f.failed(runcmd.ExitCode(*n.record))
		return true
	case n.question != nil:
		if f.open = append(f.open, *n.question); len(f.open) == 1 {
			f.ask(ctx)
		}
		return false
	}
	if told, is := n.data.(api.QuestionEvent); is {
		f.closed(ctx, told)
		return false
	}
	f.view.show(n.data)
	return false
}

// ask shows the first question that is open, and reads the answer.
func (f *following) ask(ctx context.Context) {
	f.view.ask(f.open[0])
	f.readAnswer(ctx)
}

func (f *following) readAnswer(ctx context.Context) {
	if !f.open[0].IsForOthers() {
		f.said, f.stop = f.read(ctx, "answer> ")
	}
}

func (f *following) stopAsking() {
	if f.stop != nil {
		f.stop()
	}
	f.said, f.stop = nil, nil
}

// closed forgets a question that has its answer, maybe of somebody else, or gets none.
func (f *following) closed(ctx context.Context, told api.QuestionEvent) {
	for i, q := range f.open {
		if q.ID != told.ID || told.State == api.QuestionOpen {
			continue
		}
		f.open = append(f.open[:i:i], f.open[i+1:]...)
		if i == 0 {
			if f.said != nil {
				f.stopAsking()
				f.view.note("the question is %s", told.State)
			}
			if len(f.open) > 0 {
				f.ask(ctx)
			}
		}
		return
	}
}

// answered acts on the line that was typed for a question.
func (f *following) answered(ctx context.Context, said typed) {
	f.stopAsking()
	text := said.line
	if rest, is := strings.CutPrefix(text, "/answer "); is {
		text = strings.TrimSpace(rest)
	}
	q := f.open[0]
	switch {
	case said.err != nil:
		f.view.note("`aod answer %s ANSWER` answers it", q.ID)
		f.over = f.view.edited // in a pipe the turn is shown to its end
	case text == "" || text[0] == '/':
		if text != "" {
			f.command(ctx, text)
		}
		if !f.over {
			f.readAnswer(ctx)
		}
	default:
		text = chosen(q, text)
		f.beside(ctx, false, func(ctx context.Context) error { return questions.Say(ctx, f.patient, q, text) })
	}
}

// done acts on the end of a request.
func (f *following) done(ctx context.Context, r result) {
	switch {
	case r.ofCancel:
		f.cancelling = false
	case r.err != nil && len(f.open) > 0 && f.said == nil: // it isn't answered
		f.readAnswer(ctx)
	}
	if r.err != nil && !fault.Is(r.err, fault.Conflict) {
		f.view.note("%s", ui.Printable(fault.Public(r.err).Msg+hintOf(r.err)))
	}
}

func hintOf(err error) string {
	if hint := fault.Public(err).Hint; hint != "" {
		return ": " + hint
	}
	return ""
}

// interrupted cancels the turn. It returns true where the user doesn't wait for that.
func (f *following) interrupted(ctx context.Context, signal os.Signal) (left bool) {
	f.stopAsking()
	f.over = f.over || leaves(signal) || !f.view.edited
	f.stopped = true
	if f.cancelling {
		f.over = true
		f.view.note("the turn goes on: `aod cancel %s` ends it", f.run)
		f.failed(cancelled)
		return true
	}
	f.cancelling = true
	f.beside(ctx, true, func(ctx context.Context) error {
		_, err := f.patient.Runs.Cancel(ctx, f.run, "interrupted")
		return err
	})
	return false
}
