package schedules

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules/due"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// maxSchedules is how many a server has at most.
const maxSchedules = 20_000

// storedSchedule is a row with its documents read.
type storedSchedule struct {
	row   store.Schedule
	spec  api.ScheduleSpec // with the input, where the row has it
	files []file
}

// owner is to whom it belongs, and so its runs.
func (c storedSchedule) owner() access.Owner { return access.Owner{Team: c.row.Team, By: c.row.MadeBy} }

// audited returns a context of what the client of ctx does with a schedule.
func audited(ctx context.Context, row store.Schedule, verb string) context.Context {
	return store.Audit(ctx, store.Audited{Team: row.Team, Verb: verb, Noun: "schedule", Object: row.Name})
}

// specDocument is a row's Spec.
type specDocument struct {
	api.ScheduleSpec
	By string `json:"by,omitempty"` // for programs of before version 12 of the store, which look for it here
}

func readSchedule(row store.Schedule) (storedSchedule, error) {
	stored, document := storedSchedule{row: row}, specDocument{}
	if err := json.Unmarshal(row.Spec, &document); err != nil {
		return stored, fault.Wrap(fault.Internal, err, "what is stored of the schedule can't be read").
			WithHint("make it again")
	}
	if err := json.Unmarshal(row.Private, &stored.files); err != nil {
		return stored, fault.Wrap(fault.Internal, err, "what is stored of the schedule's files can't be read").
			WithHint("make it again")
	}
	stored.spec = document.ScheduleSpec
	stored.spec.Input = row.Input
	return stored, nil
}

// rowOf returns what is stored of a specification, and of whose it is.
func rowOf(name string, owner access.Owner, spec api.ScheduleSpec, files []file) (row store.Schedule, err error) {
	row = store.Schedule{Name: name, Unit: spec.Unit, Team: owner.Team, MadeBy: owner.By}
	if len(spec.Input) > 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, spec.Input); err != nil {
			return row, fault.Wrap(fault.Input, err, "the input is not JSON")
		}
		row.Input = compact.Bytes()
	}
	spec.Input = nil
	if row.Spec, err = json.Marshal(specDocument{spec, owner.By}); err != nil {
		return row, fault.Wrap(fault.Input, err, "the schedule's specification can't be stored")
	}
	row.Private, err = json.Marshal(files)
	return row, err
}

func (c storedSchedule) plan() (*due.Plan, error) { return due.Read(c.spec, c.row.CreatedAt) }

// submission is what each run of the schedule is asked for with.
func (c storedSchedule) submission(plan *due.Plan, files *spool.Spool) spool.Submission {
	return spool.Submission{
		Unit: c.spec.Unit, Input: c.spec.Input, Files: files, Timeout: plan.Timeout,
		Metadata: c.spec.Metadata, Unattended: !c.spec.Ask,
	}
}

// sameTimes reports whether two specifications mean the same times.
func sameTimes(a, b api.ScheduleSpec) bool {
	at := func(t *time.Time) time.Time {
		if t == nil {
			return time.Time{}
		}
		return *t
	}
	return a.Cron == b.Cron && a.Timezone == b.Timezone && a.Every == b.Every && a.At == b.At && a.Jitter == b.Jitter &&
		at(a.Start).Equal(at(b.Start))
}

func plannedOf(row store.Schedule, plan *due.Plan) *planned {
	return &planned{
		name: row.Name, unit: row.Unit, seq: row.Seq, plan: plan, until: row.Until, fired: row.Fired,
		paused: row.Paused, owner: access.Owner{Team: row.Team, By: row.MadeBy},
	}
}
