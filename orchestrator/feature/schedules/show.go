package schedules

import (
	"context"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/orchestrator/feature/schedules/due"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

// Get returns a schedule, or a NotFound fault.
func (s *Scheduler) Get(ctx context.Context, name string) (api.Schedule, error) {
	row, err := s.known(ctx, name)
	if err != nil {
		return api.Schedule{}, err
	}
	shown, err := s.showAll(ctx, []store.Schedule{row})
	if err != nil {
		return api.Schedule{}, err
	}
	return shown[0], nil
}

// List lists schedules without their inputs, the newest first. Before is what a page before
// had as its Next; 0 begins at the newest. The limit is 1 to 1000; 0 is 100.
func (s *Scheduler) List(ctx context.Context, before int64, limit int) (api.SchedulePage, error) {
	limit, err := api.PageLimit(limit)
	if err != nil {
		return api.SchedulePage{}, err
	}
	rows, err := s.store.Schedules.List(ctx, store.OwnedFor(ctx), before, limit)
	if err != nil {
		return api.SchedulePage{}, err
	}
	page := api.SchedulePage{}
	if len(rows) == limit {
		page.Next = new(s.store.Schedules.Behind(rows[limit-1]))
	}
	page.Schedules, err = s.showAll(ctx, rows)
	return page, err
}

func (s *Scheduler) showAll(ctx context.Context, rows []store.Schedule) ([]api.Schedule, error) {
	seqs := make([]int64, 0, len(rows))
	for _, row := range rows {
		seqs = append(seqs, row.Seq)
	}
	last, err := s.store.Occurrences.Last(ctx, seqs)
	if err != nil {
		return nil, err
	}
	all := make([]api.Schedule, 0, len(rows))
	for _, row := range rows {
		stored, err := readSchedule(row)
		if err != nil {
			return nil, err
		}
		var of *store.Occurrence
		if o, there := last[row.Seq]; there {
			of = &o
		}
		all = append(all, s.show(ctx, stored, of))
	}
	return all, nil
}

// show returns a schedule as clients see it.
func (s *Scheduler) show(ctx context.Context, stored storedSchedule, last *store.Occurrence) api.Schedule {
	row := stored.row
	shown := api.Schedule{
		Name: row.Name, ScheduleSpec: stored.spec, By: row.MadeBy,
		Owner: api.OwnerOf(row.Team, row.MadeBy), Fired: row.Fired,
		CreatedAt: row.CreatedAt, ChangedAt: row.ChangedAt,
	}
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
	if next := p.nextLook(); !next.IsZero() {
		shown.Next = &next
	}
	shown.State = s.stateOf(row, shown)
	if err := s.subs.Permits(access.WithOwner(ctx, stored.owner()), row.Unit); err != nil {
		shown.Problem = reasonOf(err)
	}
	return shown
}

func (s *Scheduler) stateOf(row store.Schedule, shown api.Schedule) api.ScheduleState {
	switch {
	case row.Paused:
		return api.SchedulePaused
	case len(s.table.runs(row.Name)) > 0 || shown.Last != nil && shown.Last.Outcome == api.OccurrenceWaiting:
		return api.ScheduleExecuting
	case shown.Next == nil:
		return api.ScheduleEnded
	case row.Fired == 0:
		return api.ScheduleCreated
	}
	return api.ScheduleActive
}

func shownOccurrence(o store.Occurrence) api.Occurrence {
	return api.Occurrence{
		Planned: o.Planned, Fired: o.Fired, LateMS: o.LateMS, Outcome: api.OccurrenceOutcome(o.Outcome),
		Run: o.Run, Reason: o.Reason, Manual: o.Manual,
	}
}

// Occurrences returns the history of a schedule, the youngest first, paged as List is.
func (s *Scheduler) Occurrences(ctx context.Context, name string, before int64, limit int) (api.OccurrencePage, error) {
	limit, err := api.PageLimit(limit)
	if err != nil {
		return api.OccurrencePage{}, err
	}
	row, err := s.known(ctx, name)
	if err != nil {
		return api.OccurrencePage{}, err
	}
	rows, err := s.store.Occurrences.List(ctx, row.Seq, before, limit)
	page := api.OccurrencePage{Occurrences: make([]api.Occurrence, 0, len(rows))}
	for _, o := range rows {
		page.Occurrences = append(page.Occurrences, shownOccurrence(o))
	}
	if len(rows) == limit {
		page.Next = new(s.store.Occurrences.Behind(rows[limit-1]))
	}
	return page, err
}

// mostTimes bounds Next.
const mostTimes = 100

// Next returns the next n times of a schedule, 1 to 100; 0 is 10. They are those that it would
// have if it weren't paused.
func (s *Scheduler) Next(ctx context.Context, name string, n int) (api.ScheduledTimes, error) {
	n, err := timesOf(n)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	row, err := s.known(ctx, name)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	stored, err := readSchedule(row)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	plan, err := stored.plan()
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	if plan.Count > 0 {
		n = min(n, max(0, plan.Count-row.Fired))
	}
	after := row.Until
	if now := s.clock.Now().Add(-plan.Delay(name)); now.After(after) {
		after = now
	}
	return timesAfter(plan, after, n), nil
}

func timesOf(n int) (int, error) {
	if n < 0 || n > mostTimes {
		return 0, fault.New(fault.Input, "%d times can't be told; it can be 1 to %d", n, mostTimes)
	}
	if n == 0 {
		return 10, nil
	}
	return n, nil
}

// Preview checks the times of a specification and returns the next n of them, as Next
// does. Its unit isn't looked at.
func (s *Scheduler) Preview(spec api.ScheduleSpec, n int) (api.ScheduledTimes, error) {
	n, err := timesOf(n)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	now := s.clock.Now()
	plan, err := due.Read(spec, now)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	if plan.Count > 0 {
		n = min(n, plan.Count)
	}
	return timesAfter(plan, now, n), nil
}

// timesAfter returns the next n times of a plan.
func timesAfter(plan *due.Plan, after time.Time, n int) api.ScheduledTimes {
	times := api.ScheduledTimes{Times: []time.Time{}}
	for len(times.Times) < n {
		if after = plan.Next(after); after.IsZero() {
			break
		}
		times.Times = append(times.Times, after)
	}
	return times
}

// known returns what is stored of a schedule that the client of ctx may know of, or a NotFound
// fault.
func (s *Scheduler) known(ctx context.Context, name string) (store.Schedule, error) {
	for _, full := range access.NamesOf(ctx, name) {
		row, err := s.store.Schedules.Get(ctx, full)
		if err == nil && access.Sees(ctx, storedSchedule{row: row}.owner()) {
			return row, nil
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return store.Schedule{}, err
		}
	}
	return store.Schedule{}, store.UnknownSchedule(name)
}
