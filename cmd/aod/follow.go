package main

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
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
func (a *app) follow(ctx context.Context, server *client.Client, run api.Record, flags runFlags) error {
	record, err := a.ended(ctx, server, run.ID, run.Unit)
	if err != nil {
		return err
	}
	out := cmp.Or(flags.out, filepath.Join("aod-output", record.ID))
	if record.Files, err = server.Download(ctx, run.ID, record.Files, out); err != nil {
		return err
	}
	if record.Files == nil {
		record.Files = []api.File{} // as in the JSON of a record
	}
	return a.report(record, "", flags.form(), nil)
}

// ended shows a run of a unit on a server to its end, and returns its record.
func (a *app) ended(ctx context.Context, server *client.Client, id, unit string) (api.Record, error) {
	f := follower{server: server, id: id, view: newView(a.stderr, printable(unit), a.quiet), quiet: a.quiet}
	err := f.watch(ctx)
	f.view.close()
	if err != nil {
		return api.Record{}, err
	}
	return server.Run(context.WithoutCancel(ctx), id)
}

// follower shows the events of a run on a server.
type follower struct {
	server *client.Client
	id     string
	view   *view
	quiet  bool
	seen   int64 // the last event
}

// watch returns when the run has ended. An interrupt cancels the run and waits for its end.
func (f *follower) watch(ctx context.Context) error {
	f.view.waitFor("%s queued", f.view.unit)
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
	for entry, err := range f.server.Log(ctx, f.id, true) {
		if err != nil && ctx.Err() == nil {
			f.warn("the log can't be followed: " + fault.Public(err).Msg)
		}
		if err != nil {
			return
		}
		f.view.event(run.Event{
			Run: f.id,
			Log: &runtime.LogLine{Time: entry.Time, Stream: entry.Stream, Text: entry.Text},
		})
	}
}

func (f *follower) warn(text string) { f.view.event(run.Event{Run: f.id, Warning: text}) }

func (f *follower) showEvents(ctx context.Context) error {
	for event, err := range f.server.Events(ctx, f.id, f.seen) {
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
	case api.ModelCall:
		shown.Model = &data
	case api.UpstreamEvent:
		shown.Upstream = &data
	case api.NodeEvent:
		shown.Node = &data
	case api.EgressEvent:
		shown.Egress = &data
	case api.QuestionEvent:
		f.showQuestion(ctx, data)
		return
	case api.AttemptEvent:
		f.showAttempt(data)
		return
	}
	f.view.event(shown)
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
		f.view.answered(f.id, told.Address)
		return
	}
	for q, err := range f.server.Questions(ctx, f.id) {
		if err != nil {
			f.warn("what is asked can't be shown: " + fault.Public(err).Msg)
			return
		}
		if q.ID == told.ID {
			f.view.asks(f.id, q)
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
	f.view.print("%s attempt %d failed, the next one begins in %v: %s", f.view.out.style(yellow, "warning:"),
		told.Number, time.Duration(told.RetryInMS)*time.Millisecond, printable(why))
}

// cancel cancels the run for its interrupted user and shows its end.
func (f *follower) cancel(ctx context.Context) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer done()
	f.view.waitFor("cancelling %s", f.view.unit)
	_, err := f.server.Cancel(ctx, f.id, "interrupted")
	if err == nil || fault.Is(err, fault.Conflict) { // it had ended already
		err = f.showEvents(ctx)
	}
	if err != nil {
		return fault.Wrap(fault.Cancelled, err, "interrupted, but the end of run %s was not seen", f.id).
			WithHint("it may go on: aod cancel %s", f.id)
	}
	return nil
}
