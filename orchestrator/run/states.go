package run

import (
	"fmt"
	"slices"

	"github.com/agent-on-demand/aod/api"
)

// next are the legal transitions of a run (specification "Agent Wrapper", State Machine
// Rules). A run begins Idle and ends Idle. An attempt that failed, or a claim that came to
// nothing, may be followed by another one: Failed -> Starting. A process that goes on with
// the run of a dead one may enter Starting and Cleanup again.
var next = map[api.State][]api.State{
	api.Idle:      {api.Starting, api.Failed, api.Timeout, api.Cancelled},
	api.Starting:  {api.Starting, api.Running, api.Failed, api.Timeout, api.Cancelled},
	api.Running:   {api.Completed, api.Failed, api.Timeout, api.Cancelled},
	api.Completed: {api.Cleanup},
	api.Failed:    {api.Starting, api.Failed, api.Timeout, api.Cancelled, api.Cleanup},
	api.Timeout:   {api.Cleanup},
	api.Cancelled: {api.Cleanup},
	api.Cleanup:   {api.Cleanup, api.Idle},
}

// Follows reports whether a run may go from one state to another.
func Follows(from, to api.State) bool { return slices.Contains(next[from], to) }

// State returns the state in which the run is. The record goes on showing how it ended.
func (r *Run) State() api.State {
	if last := len(r.Record.Transitions) - 1; last >= 0 {
		return r.Record.Transitions[last].State
	}
	return api.Idle
}

// Over reports whether all is done, the cleaning up as well.
func (r *Run) Over() bool { return Over(r.Record) }

// Over reports whether the run of a record has come to its very end.
func Over(record api.Record) bool {
	last := len(record.Transitions) - 1
	return record.Outcome != "" && last >= 0 && record.Transitions[last].State == api.Idle
}

// legal refuses a transition that is not in the table: it is a fault of ours.
func (r *Run) legal(to api.State) error {
	if from := r.State(); !Follows(from, to) {
		return fmt.Errorf("run %s can't go from %s to %s", r.ID, from, to)
	}
	return nil
}
