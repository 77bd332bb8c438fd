package orchestrator

import (
	"encoding/json"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// A wreck is a stored run that can't be decoded: another program wrote to the store, or its
// disk failed in a way that no check finds. It must stand in nobody's way.

func undecodable(err error) error {
	return fault.Wrap(fault.Internal, err, "what is stored of this run can't be read").
		WithHint("other runs aren't touched by it; if there are more such runs, look after the disk of the data " +
			"directory")
}

// isDocument reports whether a stored document is JSON, or missing.
func isDocument(raw []byte) bool { return len(raw) == 0 || json.Valid(raw) }

// openWreck is the record of a wreck that hasn't come to its end, as far as the row tells: that
// of a run that was just accepted, or of one that has begun, so that its kind removes what it
// has of it.
func openWreck(row store.Run) api.Record {
	record := api.Record{
		ID: row.ID, Unit: row.Unit, Kind: row.Kind, Parent: row.Parent, Root: row.Root,
		State: api.Idle, Status: api.Queued, Files: []api.File{}, CreatedAt: row.CreatedAt,
		Transitions: []api.Transition{{State: api.Idle, At: row.CreatedAt, Reason: string(api.Queued)}},
	}
	if isDocument(row.Input) {
		record.Input = row.Input
	}
	if row.State != string(api.Idle) {
		record.State, record.Status = api.Starting, api.Starting.Status()
		record.Transitions = append(record.Transitions, api.Transition{State: api.Starting, At: row.CreatedAt})
	}
	return record
}

// shownOf is recordOf for whoever looks at a run. A wreck is shown as a run that failed.
func shownOf(row store.Run) api.Record {
	record, err := recordOf(row)
	if err == nil {
		return record
	}
	record = openWreck(row)
	if !row.Finished {
		return record
	}
	result := run.Unreadable(err)
	record.State, record.Outcome, record.Error = result.State, result.Outcome, result.Failure
	record.Status = record.State.Status()
	record.FinishedAt = &row.FinishedAt
	return record
}

// summaryOf is a run as a list shows it.
func summaryOf(row store.Run) (summary api.Summary, err error) {
	if json.Unmarshal(row.Record, &summary) != nil || summary.ID != row.ID {
		raw, err := json.Marshal(shownOf(row))
		if err != nil {
			return summary, err
		}
		summary = api.Summary{}
		err = json.Unmarshal(raw, &summary)
		return summary, err
	}
	summary.Status = summary.State.Status() // an older version didn't store it
	return summary, nil
}
