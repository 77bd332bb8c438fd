package run

import (
	"fmt"
	"slices"

	"github.com/agent-on-demand/aod/api"
)

// next are the legal transitions of a run (specification "Agent Wrapper", State Machine
// Rules). A run begins Idle and ends Idle. Failed -> Starting is another attempt, also after
// a warm sandbox that could not be used. A process that resumes the run of a dead one may
// enter Starting and Cleanup again.
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

// State returns the current state of the run. The record shows how the run ended instead.
func (r *Run) State() api.State {
	if last := len(r.Record.Transitions) - 1; last >= 0 {
		return r.Record.Transitions[last].State
	}
	return api.Idle
}

// Over reports whether the run has ended and is cleaned up.
func (r *Run) Over() bool { return Over(r.Record) }

// Over reports whether the run of a record has ended and is cleaned up.
func Over(record api.Record) bool {
	last := len(record.Transitions) - 1
	return record.Outcome != "" && last >= 0 && record.Transitions[last].State == api.Idle
}

// legal returns an error for a transition that is not in the table.
func (r *Run) legal(to api.State) error {
	if from := r.State(); !Follows(from, to) {
		return fmt.Errorf("run %s can't go from %s to %s", r.ID, from, to)
	}
	return nil
}
