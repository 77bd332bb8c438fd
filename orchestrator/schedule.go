package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/schedule"
	"github.com/agent-on-demand/aod/store"
)

// maxSchedules is how many a server has at most.
const maxSchedules = 20_000

// storedSchedule is a row with its documents read.
type storedSchedule struct {
	row   store.Schedule
	spec  api.ScheduleSpec // with the input, where the row has it
	by    string           // the name of the token with which it was made; "": it has none
	files []scheduleFile
}

// specDocument is a row's Spec.
type specDocument struct {
	api.ScheduleSpec
	By string `json:"by,omitempty"`
}

func readSchedule(row store.Schedule) (storedSchedule, error) {
	stored, document := storedSchedule{row: row}, specDocument{}
	if err := json.Unmarshal(row.Spec, &document); err != nil {
		return stored, fault.Wrap(fault.Internal, err, "what is stored of the schedule can't be read").WithHint("make it again")
	}
	if err := json.Unmarshal(row.Private, &stored.files); err != nil {
		return stored, fault.Wrap(fault.Internal, err, "what is stored of the schedule's files can't be read").WithHint("make it again")
	}
	stored.spec, stored.by = document.ScheduleSpec, document.By
	stored.spec.Input = row.Input
	return stored, nil
}

// scheduleRowOf returns what is stored of a specification, and of the token with which it came.
func scheduleRowOf(name, by string, spec api.ScheduleSpec, files []scheduleFile) (row store.Schedule, err error) {
	row = store.Schedule{Name: name, Unit: spec.Unit}
	if len(spec.Input) > 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, spec.Input); err != nil {
			return row, fault.Wrap(fault.Input, err, "the input is not JSON")
		}
		row.Input = compact.Bytes()
	}
	spec.Input = nil
	if row.Spec, err = json.Marshal(specDocument{spec, by}); err != nil {
		return row, fault.Wrap(fault.Input, err, "the schedule's specification can't be stored")
	}
	row.Private, err = json.Marshal(files)
	return row, err
}

func (c storedSchedule) plan() (*schedule.Plan, error) { return schedule.Read(c.spec, c.row.CreatedAt) }

// submission returns what each run of the schedule is asked for with.
func (c storedSchedule) submission(plan *schedule.Plan, files *spool.Spool) Submission {
	return Submission{Unit: c.spec.Unit, Input: c.spec.Input, Files: files, Timeout: plan.Timeout, Metadata: c.spec.Metadata, Unattended: !c.spec.Ask}
}

// same reports whether a schedule says and has what another row does.
func (c storedSchedule) same(row store.Schedule) bool {
	return bytes.Equal(c.row.Spec, row.Spec) && bytes.Equal(c.row.Input, row.Input) && bytes.Equal(c.row.Private, row.Private)
}

// sameTimes reports whether two specifications mean the same times.
func sameTimes(a, b api.ScheduleSpec) bool {
	at := func(t *time.Time) time.Time {
		if t == nil {
			return time.Time{}
		}
		return *t
	}
	return a.Cron == b.Cron && a.Timezone == b.Timezone && a.Every == b.Every && a.At == b.At && a.Jitter == b.Jitter && at(a.Start).Equal(at(b.Start))
}

// show returns a schedule as clients see it.
func (s *Service) show(ctx context.Context, stored storedSchedule, last *store.Occurrence) api.Schedule {
	row := stored.row
	shown := api.Schedule{Name: row.Name, ScheduleSpec: stored.spec, Fired: row.Fired, CreatedAt: row.CreatedAt, ChangedAt: row.ChangedAt}
	for _, f := range stored.files {
		shown.Files = append(shown.Files, f.shown())
	}
	if last != nil {
		o := shownOccurrence(*last)
		shown.Last = &o
	}
	plan, err := stored.plan()
	if err != nil {
		shown.State, shown.Problem = api.ScheduleEnded, reasonOf(err)
		return shown
	}
	p := planned{name: row.Name, plan: plan, until: row.Until, fired: row.Fired, paused: row.Paused}
	if next := s.nextLook(&p); !next.IsZero() {
		shown.Next = &next
	}
	shown.State = s.scheduleState(row, shown)
	shown.Problem = s.problemOf(ctx, row.Unit)
	return shown
}

func (s *Service) scheduleState(row store.Schedule, shown api.Schedule) api.ScheduleState {
	switch {
	case row.Paused:
		return api.SchedulePaused
	case len(s.timetable.runs(row.Name)) > 0 || shown.Last != nil && shown.Last.Outcome == api.OccurrenceWaiting:
		return api.ScheduleExecuting
	case shown.Next == nil:
		return api.ScheduleEnded
	case row.Fired == 0:
		return api.ScheduleCreated
	}
	return api.ScheduleActive
}

// problemOf says why a run of a unit would be refused, as far as that shows without its input.
func (s *Service) problemOf(ctx context.Context, name string) string {
	u, err := s.units.Get(ctx, name)
	if err == nil && u.Policy.Refusal != nil {
		err = u.Policy.Refusal
	}
	if err == nil {
		err = s.switches.check(u)
	}
	if err != nil {
		return reasonOf(err)
	}
	return ""
}

func shownOccurrence(o store.Occurrence) api.Occurrence {
	return api.Occurrence{
		Planned: o.Planned, Fired: o.Fired, LateMS: o.LateMS, Outcome: api.OccurrenceOutcome(o.Outcome),
		Run: o.Run, Reason: o.Reason, Manual: o.Manual,
	}
}

// eachSchedule calls do with every stored schedule that can be read, without its input.
func (s *Service) eachSchedule(ctx context.Context, do func(storedSchedule)) error {
	for before := int64(0); ; {
		rows, err := s.store.Schedules(ctx, before, 0)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			before = row.Seq
			stored, err := readSchedule(row)
			if err != nil {
				s.logger.Error("schedule can't be read", "schedule", row.Seq, fault.LogAttr(err))
			}
			do(stored)
		}
	}
}

// restoreSchedules takes in the schedules that are stored. Those with occurrences that wait are
// looked at first.
func (s *Service) restoreSchedules(ctx context.Context) error {
	all, err := s.store.WaitingOccurrences(ctx, 0)
	if err != nil {
		return err
	}
	waiting := map[int64][]store.Occurrence{}
	for _, o := range all {
		waiting[o.Schedule] = append(waiting[o.Schedule], o)
	}
	return s.eachSchedule(ctx, func(stored storedSchedule) {
		plan, err := stored.plan()
		if err != nil {
			s.logger.Error("schedule not kept", "schedule", stored.row.Seq, fault.LogAttr(err))
			return
		}
		p := plannedOf(stored.row, plan)
		p.waiting = waiting[p.seq]
		s.timetable.add(p)
		due := s.nextLook(p)
		if len(p.waiting) > 0 {
			due = time.Unix(0, 0)
		}
		s.timetable.lookAt(p, due)
	})
}

func plannedOf(row store.Schedule, plan *schedule.Plan) *planned {
	return &planned{name: row.Name, unit: row.Unit, seq: row.Seq, plan: plan, until: row.Until, fired: row.Fired, paused: row.Paused}
}
