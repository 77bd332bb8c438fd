package api

import "testing"

func TestAStatusIsAStateInThePeoplesWords(t *testing.T) {
	for state, want := range map[State]Status{
		Idle: "queued", Starting: "starting", Running: "running", Completed: "completed",
		Failed: "failed", Timeout: "timeout", Cancelled: "cancelled", Cleanup: "cleanup",
	} {
		if got := state.Status(); got != want || StateOf(got) != state || StateOf(Status(state)) != state {
			t.Errorf("%s is %s, and that is %s again", state, got, StateOf(got))
		}
	}
}
