package records

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Decode returns the record of a stored run. The error is a fault of a row that is corrupt: another program
// wrote to the store, or its disk failed in a way that no check finds. It must stand in nobody's way.
func Decode(row store.Run) (api.Record, error) {
	var record api.Record
	if err := json.Unmarshal(row.Record, &record); err != nil {
		return record, run.Corrupt(err)
	}
	if record.ID != row.ID || string(record.State) != row.State {
		return record, run.Corrupt(errors.New("its record is of another run or state"))
	}
	if !isDocument(row.Input) || !isDocument(row.Output) {
		return record, run.Corrupt(errors.New("its input or output isn't JSON"))
	}
	record.Input, record.Output = row.Input, row.Output
	record.Status = record.State.Status() // an older version didn't store it
	return record, nil
}

// isDocument reports whether a stored document is JSON, or missing.
func isDocument(raw []byte) bool { return len(raw) == 0 || json.Valid(raw) }

// OfCorruptRow is the record of a run that can't be decoded and hasn't come to its end, as far as the row tells:
// that of a run that was just accepted, or of one that has begun, so that its kind removes what it
// has of it.
func OfCorruptRow(row store.Run) api.Record {
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

// Show is Decode for whoever looks at a run. One that can't be decoded is shown as a run that failed.
func Show(row store.Run) api.Record {
	record, err := Decode(row)
	if err == nil {
		return record
	}
	record = OfCorruptRow(row)
	if !row.Finished {
		return record
	}
	result := run.Unreadable(err)
	record.State, record.Outcome, record.Error = result.State, result.Outcome, result.Failure
	record.Status = record.State.Status()
	record.FinishedAt = &row.FinishedAt
	return record
}

// Summary returns a run as a list shows it.
func Summary(row store.Run) (summary api.Summary, err error) {
	if json.Unmarshal(row.Record, &summary) != nil || summary.ID != row.ID {
		raw, err := json.Marshal(Show(row))
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

// rowPage is how many runs are read at once.
const rowPage = 200

// Each goes through the newest runs that a filter selects, at most so many.
func Each(ctx context.Context, from Rows, f store.Filter, most int, do func(store.Run)) error {
	for left := most; left > 0; {
		f.Limit = min(left, rowPage)
		page, err := from.List(ctx, f)
		if err != nil {
			return err
		}
		for _, row := range page.Runs {
			do(row)
		}
		left -= len(page.Runs)
		if f.Cursor = page.Next; f.Cursor == "" {
			return nil
		}
	}
	return nil
}

// Calls lists the runs that a run asked for, as its record shows them.
func Calls(ctx context.Context, from Rows, id string) ([]api.Call, error) {
	const most = 1000
	var calls []api.Call
	err := Each(ctx, from, store.Filter{Parent: id}, most,
		func(row store.Run) { calls = append(calls, CallOf(Show(row))) })
	sortCalls(calls)
	return calls, err
}

// CallOf returns the entry for a called run in its caller's record.
func CallOf(r api.Record) api.Call {
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
