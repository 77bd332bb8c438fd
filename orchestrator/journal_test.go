package orchestrator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/orchestrator/records"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

func TestWhatTheJournalStoresIsReadByItsType(t *testing.T) {
	t.Parallel()
	half := 50.0
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	attempt := api.Attempt{Number: 1, Outcome: api.SystemError, FinishedAt: at}
	for _, c := range []struct {
		event run.Event
		want  api.EventData
	}{
		{run.Event{State: &api.Transition{State: api.Running, At: at, Attempt: 2}}, api.Transition{State: api.Running, At: at, Attempt: 2}},
		{run.Event{Attempt: &attempt, Delay: 1500 * time.Millisecond}, api.AttemptEvent{Attempt: attempt, RetryInMS: 1500}},
		{run.Event{Warning: "w"}, api.WarningEvent{Message: "w"}},
		{run.Event{Progress: &handoff.Progress{Percent: &half, Step: "s", Message: "m"}}, api.ProgressEvent{Percent: &half, Step: "s", Message: "m"}},
		{run.Event{Build: &runtime.BuildEvent{Step: "s", Name: "n", State: runtime.StepDone}}, api.BuildEvent{Step: "s", Name: "n", State: "done"}},
	} {
		events := stored(c.event)
		if len(events) != 1 {
			t.Fatalf("%T: %d events", c.want, len(events))
		}
		got, err := records.EventOf(events[0]).Decode()
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%T: error %v %s", c.want, err, diff)
		}
	}
	if events := stored(run.Event{Build: &runtime.BuildEvent{State: runtime.StepLog, Log: "x"}}); len(events) > 0 {
		t.Errorf("what a step prints is stored: %+v", events)
	}
}
