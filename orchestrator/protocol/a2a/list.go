package a2a

import (
	"context"
	"fmt"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

const (
	defaultPage = 50
	maxPage     = 100

	badPageSize = "pageSize is from 1 to 100"
	badState    = "status isn't a state of a task"
)

const (
	maxLooks     = 20      // how often runs are read for one page of tasks that are shown in short
	maxPageBytes = 8 << 20 // of the tasks of a page; it has one in any case
)

// listing makes pages of tasks.
type listing struct {
	tasks tasks
	call  *call
	show  shown
	keep  func(api.Record) bool
}

// looks returns how often runs are read for a page, and how many at once: tasks that are shown whole
// are read one by one, so that the page can end behind each of them.
func (l listing) looks(size int) (looks, each int) {
	if l.show.messages() || l.show.artifacts {
		return size + maxLooks, 1
	}
	return maxLooks, size
}

// page reads runs until there are as many tasks as were asked for, or they have maxPageBytes. Where
// few of many runs are among them, it has fewer.
func (l listing) page(ctx context.Context, filter api.ChangedFilter) (*sdk.ListTasksResponse, error) {
	answer := &sdk.ListTasksResponse{Tasks: []*sdk.Task{}, PageSize: filter.Limit}
	looks, each := l.looks(answer.PageSize)
	for range looks {
		filter.Limit = min(each, answer.PageSize-len(answer.Tasks)) // so that the next page begins behind the last task
		found, err := l.tasks.svc.Changed(ctx, filter)
		if fault.Is(err, fault.BadRequest) || fault.Is(err, fault.Input) {
			return nil, refuse(badParams, "pageToken is none that this server gave")
		}
		if err != nil {
			return nil, err
		}
		for _, record := range found.Runs {
			if l.call.unit == "" && l.tasks.svc.Admits(ctx, record.Unit) != nil {
				continue
			}
			task, err := l.task(ctx, record)
			if err != nil {
				return nil, err
			}
			if task != nil {
				answer.Tasks = append(answer.Tasks, task)
			}
		}
		answer.TotalSize, answer.NextPageToken = found.Total, found.Next
		if found.Next == "" || len(answer.Tasks) == answer.PageSize || l.call.holds() >= maxPageBytes {
			break
		}
		filter.Cursor = found.Next
	}
	return answer, nil
}

// task is a run of a list as a task; nil: it isn't among those that are asked for.
func (l listing) task(ctx context.Context, record api.Record) (*sdk.Task, error) {
	if record.Outcome == "" || l.show.artifacts {
		var err error
		if record, err = l.tasks.svc.Get(ctx, record.ID); fault.Is(err, fault.NotFound) {
			return nil, nil // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
	}
	if !l.keep(record) {
		return nil, nil
	}
	return l.tasks.show(ctx, l.call, record, l.show)
}

// filterOf converts what is asked for. keep says of a run whether it is among it, where that
// can't be told by its state alone.
func filterOf(c *call, req *sdk.ListTasksRequest) (f api.ChangedFilter, keep func(api.Record) bool, err error) {
	f = api.ChangedFilter{Unit: c.unit, Context: req.ContextID, Limit: req.PageSize, Cursor: req.PageToken}
	switch {
	case f.Limit == 0:
		f.Limit = defaultPage
	case f.Limit < 0 || f.Limit > maxPage:
		return f, nil, refuse(badParams, badPageSize)
	}
	if f.Context != "" && !isID(f.Context) {
		return f, nil, refuse(badParams, fmt.Sprintf("contextId is not a text of at most %d bytes", maxID))
	}
	if err := checkHistory(req.HistoryLength); err != nil {
		return f, nil, err
	}
	if req.StatusTimestampAfter != nil {
		f.Since = *req.StatusTimestampAfter
	}
	states, known := statesOf[req.Status]
	if !known {
		return f, nil, refuse(badParams, badState)
	}
	f.States = states
	return f, func(r api.Record) bool { return req.Status == "" || stateShown(r) == req.Status }, nil
}

// statesOf are the states of the runs of a task's state.
var statesOf = map[sdk.TaskState][]api.State{
	sdk.TaskStateUnspecified:   nil,
	sdk.TaskStateSubmitted:     {api.Idle},
	sdk.TaskStateWorking:       {api.Starting, api.Running},
	sdk.TaskStateInputRequired: {api.Starting, api.Running},
	sdk.TaskStateAuthRequired:  {api.Starting, api.Running},
	sdk.TaskStateCompleted:     {api.Completed},
	sdk.TaskStateFailed:        {api.Failed, api.Timeout},
	sdk.TaskStateRejected:      {api.Failed},
	sdk.TaskStateCanceled:      {api.Cancelled},
}

// stateShown is the state of a task by its record.
func stateShown(r api.Record) sdk.TaskState {
	switch {
	case r.Outcome != "":
		return endOf(r).State
	case r.Question == nil && len(r.Attempts) > 0:
		return sdk.TaskStateWorking // it waits for another attempt
	case r.Question == nil:
		return stateOf(r.State)
	case r.Question.Kind == api.QuestionAuth:
		return sdk.TaskStateAuthRequired
	}
	return sdk.TaskStateInputRequired
}
