package runcmd

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/progress"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	// cancelTime bounds the wait for an interrupted run.
	cancelTime = time.Minute
	// logTime bounds the wait for the rest of a log after the end of its run.
	logTime = 5 * time.Second
)

// follow shows a run on a server to its end and reports it like a local run.
func follow(ctx context.Context, env *cli.Env, server *client.Client, run api.Record, flags Flags) error {
	record, err := AwaitEnd(ctx, env, server, run.ID, run.Unit)
	if err != nil {
		return err
	}
	out := cmp.Or(flags.Out, filepath.Join("aod-output", record.ID))
	if record.Files, err = server.Files.Download(ctx, run.ID, record.Files, out); err != nil {
		return err
	}
	if record.Files == nil {
		record.Files = []api.File{} // as in the JSON of a record
	}
	return Report(env, record, "", flags.Form(), nil)
}

// AwaitEnd shows a run of a unit on a server to its end, and returns its record.
func AwaitEnd(ctx context.Context, env *cli.Env, server *client.Client, id, unit string) (api.Record, error) {
	f := follower{server: server, id: id, view: progress.New(env.Err, ui.Printable(unit), env.Quiet), quiet: env.Quiet}
	err := f.watch(ctx)
	f.view.Close()
	if err != nil {
		return api.Record{}, err
	}
	return server.Runs.Get(context.WithoutCancel(ctx), id)
}

// follower shows the events of a run on a server.
type follower struct {
	server *client.Client
	id     string
	view   *progress.View
	quiet  bool
	seen   int64 // the last event
}

// watch returns when the run has ended. An interrupt cancels the run and waits for its end.
func (f *follower) watch(ctx context.Context) error {
	f.view.WaitFor("%s queued", f.view.Unit)
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var logs sync.WaitGroup
	if !f.quiet {
		logs.Go(func() { f.showLog(lasting) })
	}
	err := f.showEvents(ctx)
	if ctx.Err() != nil {
		err = f.cancel(ctx)
	}
	if err != nil {
		stop()
	}
	late := time.AfterFunc(logTime, stop)
	defer late.Stop()
	logs.Wait()
	return err
}

func (f *follower) showLog(ctx context.Context) {
	for entry, err := range f.server.Runs.Log(ctx, f.id, api.LogFilter{Follow: true}) {
		if err != nil && ctx.Err() == nil {
			f.warn("the log can't be followed: " + fault.Public(err).Msg)
		}
		if err != nil {
			return
		}
		f.view.Event(run.Event{
			Run: f.id,
			Log: &runtime.LogLine{Time: entry.Time, Stream: entry.Stream, Text: entry.Text},
		})
	}
}

func (f *follower) warn(text string) { f.view.Event(run.Event{Run: f.id, Warning: text}) }

func (f *follower) showEvents(ctx context.Context) error {
	for event, err := range f.server.Runs.Events(ctx, f.id, f.seen) {
		if err != nil {
			return err
		}
		f.seen = event.Seq
		f.show(ctx, event)
	}
	return nil
}

// show ignores unknown events: a server may be newer than the client.
func (f *follower) show(ctx context.Context, event api.Event) {
	data, err := event.Decode()
	if err != nil {
		return
	}
	shown := run.Event{Run: f.id}
	switch data := data.(type) {
	case api.Transition:
		shown.State = &data
	case api.WarningEvent:
		shown.Warning = data.Message
	case api.BuildEvent:
		shown.Build = &runtime.BuildEvent{Step: data.Step, Name: data.Name, State: runtime.StepState(data.State)}
	case api.ProgressEvent:
		shown.Progress = &handoff.Progress{Percent: data.Percent, Step: data.Step, Message: data.Message}
	case api.Call:
		shown = f.callEvent(data)
	case api.QuestionEvent:
		f.showQuestion(ctx, data)
		return
	case api.AttemptEvent:
		f.showAttempt(data)
		return
	default:
		shown.Data = data
	}
	f.view.Event(shown)
}

// callEvent turns the start or end of a call into the event of the called run itself.
func (f *follower) callEvent(call api.Call) run.Event {
	state := api.Transition{State: call.State, At: time.Now()}
	return run.Event{
		Run: call.ID, Unit: call.Unit, Parent: f.id, Step: call.Step, State: &state, Files: call.Files,
		Outcome: call.ErrorKind,
	}
}

// showQuestion shows what is asked, unless that has its answer by now.
func (f *follower) showQuestion(ctx context.Context, told api.QuestionEvent) {
	if told.State != api.QuestionOpen {
		f.view.Answered(f.id, told.Address)
		return
	}
	for q, err := range f.server.Questions.List(ctx, f.id) {
		if err != nil {
			f.warn("what is asked can't be shown: " + fault.Public(err).Msg)
			return
		}
		if q.ID == told.ID {
			f.view.Asks(f.id, q)
			return
		}
	}
}

// showAttempt reports a failed attempt that is repeated.
func (f *follower) showAttempt(told api.AttemptEvent) {
	why := string(told.Outcome)
	if told.Error != nil {
		why = told.Error.Message
	}
	f.view.Print("%s attempt %d failed, the next one begins in %v: %s", f.view.Out.Style(ui.Yellow, "warning:"),
		told.Number, time.Duration(told.RetryInMS)*time.Millisecond, ui.Printable(why))
}

// cancel cancels the run for its interrupted user and shows its end.
func (f *follower) cancel(ctx context.Context) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer done()
	f.view.WaitFor("cancelling %s", f.view.Unit)
	_, err := f.server.Runs.Cancel(ctx, f.id, "interrupted")
	if err == nil || fault.Is(err, fault.Conflict) { // it had ended already
		err = f.showEvents(ctx)
	}
	if err != nil {
		return fault.Wrap(fault.Cancelled, err, "interrupted, but the end of run %s was not seen", f.id).
			WithHint("it may go on: aod cancel %s", f.id)
	}
	return nil
}
