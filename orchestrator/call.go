package orchestrator

import (
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
)

// callOf returns the entry for a called run in its caller's record.
func callOf(r api.Record) api.Call {
	call := api.Call{
		ID: r.ID, Unit: r.Unit, Step: r.Step, State: r.State, Outcome: r.Outcome, Files: len(r.Files),
		CreatedAt: r.CreatedAt, FinishedAt: r.FinishedAt, TotalMS: r.Timings.Total, Calls: r.Calls,
	}
	if r.Error != nil {
		call.ErrorKind = r.Error.Kind
	}
	return call
}

// sortCalls sorts calls by the time when they were made.
func sortCalls(calls []api.Call) {
	slices.SortFunc(calls, func(a, b api.Call) int { return strings.Compare(a.ID, b.ID) })
}
