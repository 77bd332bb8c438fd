package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/schedule"
	"github.com/agent-on-demand/aod/store"
)

// PutSchedule makes a schedule, or gives one another specification. It takes the files over: each
// of the schedule's runs gets them; with nil it has none. One that is as it was stays as it is. The
// error is a fault that names what is wrong with the specification, and nothing has changed then.
func (s *Service) PutSchedule(ctx context.Context, name string, spec api.ScheduleSpec, files *Spool) (shown api.Schedule, created bool, err error) {
	defer func() { err = errors.Join(err, files.Remove()) }()
	row, err := s.scheduleRow(name, ClientOf(ctx), spec, files)
	if err != nil {
		return shown, false, err
	}
	if err := s.admits(ctx); err != nil {
		return shown, false, err
	}
	s.timetable.changing.Lock()
	defer s.timetable.changing.Unlock()
	old, err := s.store.Schedule(ctx, name)
	created = fault.Is(err, fault.NotFound)
	if err != nil && !created {
		return shown, false, err
	}
	was := storedSchedule{row: old}
	if !created {
		if was, err = readSchedule(old); err == nil && was.same(row) {
			shown, err = s.Schedule(ctx, name)
			return shown, false, err
		}
	}
	if err := s.checkSchedule(ctx, was, created, &row, spec, files); err != nil {
		return shown, false, err
	}
	if err := s.storeSchedule(ctx, was, row, files); err != nil {
		return shown, false, err
	}
	shown, err = s.Schedule(ctx, name)
	return shown, created, err
}

// scheduleRow checks what needs no look at anything else.
func (s *Service) scheduleRow(name, by string, spec api.ScheduleSpec, files *Spool) (store.Schedule, error) {
	if err := api.CheckUnitName(name); err != nil {
		return store.Schedule{}, fault.New(fault.Input, "a schedule can't have the name %s", fault.Quote(name)).WithHint("%s", fault.Public(err).Hint)
	}
	if err := api.CheckMetadata(spec.Metadata); err != nil {
		return store.Schedule{}, err
	}
	if files != nil && files.project != nil {
		return store.Schedule{}, fault.New(fault.Unsupported, "a schedule takes no workspace").WithHint("give files, or submit runs with their projects")
	}
	if int64(len(spec.Input)) > s.opts.PayloadBytes {
		return store.Schedule{}, fault.New(fault.TooLarge, "the input has more than %d bytes", s.opts.PayloadBytes)
	}
	return scheduleRowOf(name, by, spec, filesOf(files))
}

// checkSchedule holds a new specification against its unit and the clock, and completes its row.
func (s *Service) checkSchedule(ctx context.Context, was storedSchedule, created bool, row *store.Schedule, spec api.ScheduleSpec, files *Spool) error {
	now := s.opts.Clock.Now()
	row.CreatedAt, row.ChangedAt, row.Until = now, now, now
	if !created {
		row.CreatedAt, row.Paused = was.row.CreatedAt, was.row.Paused
		if sameTimes(was.spec, spec) {
			row.Until = was.row.Until
		}
	}
	plan, err := schedule.Read(spec, row.CreatedAt)
	if err != nil {
		return err
	}
	if created && s.timetable.count() >= maxSchedules {
		return fault.New(fault.Busy, "there are %d schedules already", maxSchedules).WithHint("remove some that nobody needs: `aod schedule rm NAME`")
	}
	if plan.Next(row.Until).IsZero() {
		return inThePast(spec)
	}
	u, err := s.units.Get(ctx, spec.Unit)
	if err != nil {
		return err
	}
	_, err = s.prepare(ctx, u, storedSchedule{spec: spec}.submission(plan, files))
	return err
}

// inThePast is the fault of a schedule whose times have all passed.
func inThePast(spec api.ScheduleSpec) error {
	pointer := "/until"
	if spec.At != "" {
		pointer = "/at"
	}
	return fault.New(fault.Input, "the schedule would never come").
		WithFindings([]fault.Finding{{Pointer: pointer, Message: "it lies in the past", Hint: "name a later time"}})
}

// storeSchedule stores a row that was checked, with its files, and goes by it from now on.
func (s *Service) storeSchedule(ctx context.Context, was storedSchedule, row store.Schedule, files *Spool) (err error) {
	plan, err := schedule.Read(mustSpec(row), row.CreatedAt)
	if err != nil {
		return err
	}
	p := s.timetable.find(row.Name)
	if p == nil {
		p = plannedOf(row, plan)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if row.Files, err = s.keepScheduleFiles(files); err != nil {
		return err
	}
	if p.seq != 0 && p.until.After(row.Until) && row.Until.Equal(was.row.Until) {
		row.Until = p.until // it was looked at meanwhile
	}
	stored, err := s.store.PutSchedule(ctx, row)
	if err != nil {
		s.dropScheduleFiles(row.Files)
		return err
	}
	s.dropScheduleFiles(was.row.Files)
	p.seq, p.plan, p.until, p.fired, p.paused = stored.Seq, plan, stored.Until, stored.Fired, stored.Paused
	if s.timetable.find(row.Name) == nil {
		s.timetable.add(p)
	}
	s.timetable.serve(p, stored.Unit)
	s.timetable.lookAt(p, s.nextLook(p))
	s.logger.Info("schedule stored", "schedule", stored.Seq, "unit", stored.Unit)
	return nil
}

func mustSpec(row store.Schedule) api.ScheduleSpec {
	stored, _ := readSchedule(row) // it was written a moment ago
	return stored.spec
}

// Schedule returns a schedule, or a NotFound fault.
func (s *Service) Schedule(ctx context.Context, name string) (api.Schedule, error) {
	row, err := s.store.Schedule(ctx, name)
	if err != nil {
		return api.Schedule{}, err
	}
	shown, err := s.showAll(ctx, []store.Schedule{row})
	if err != nil {
		return api.Schedule{}, err
	}
	return shown[0], nil
}

// Schedules lists schedules without their inputs, the newest first. Before is what a page before
// had as its Next; 0 begins at the newest. The limit is 1 to 1000; 0 is 100.
func (s *Service) Schedules(ctx context.Context, before int64, limit int) (api.SchedulePage, error) {
	limit, err := limitOf(limit)
	if err != nil {
		return api.SchedulePage{}, err
	}
	rows, err := s.store.Schedules(ctx, before, limit)
	if err != nil {
		return api.SchedulePage{}, err
	}
	page := api.SchedulePage{}
	if len(rows) == limit {
		page.Next = &rows[limit-1].Seq
	}
	page.Schedules, err = s.showAll(ctx, rows)
	return page, err
}

func (s *Service) showAll(ctx context.Context, rows []store.Schedule) ([]api.Schedule, error) {
	seqs := make([]int64, 0, len(rows))
	for _, row := range rows {
		seqs = append(seqs, row.Seq)
	}
	last, err := s.store.LastOccurrences(ctx, seqs)
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

// DeleteSchedule removes a schedule with its history and its files. Runs of it that go on do so.
func (s *Service) DeleteSchedule(ctx context.Context, name string) error {
	return s.changeSchedule(ctx, name, func(p *planned, row store.Schedule) error {
		if err := s.store.DeleteSchedule(ctx, name); err != nil {
			return err
		}
		if p != nil {
			p.gone, p.waiting = true, nil
			s.timetable.remove(p)
		}
		s.dropScheduleFiles(row.Files)
		s.logger.Info("schedule removed", "schedule", row.Seq)
		return nil
	})
}

// PauseSchedule pauses a schedule, or has it go on. What is due while it is paused has no
// occurrence, and what waits is cancelled.
func (s *Service) PauseSchedule(ctx context.Context, name string, paused bool) (api.Schedule, error) {
	err := s.changeSchedule(ctx, name, func(p *planned, row store.Schedule) error {
		if row.Paused == paused {
			return nil
		}
		now := s.opts.Clock.Now()
		cancelled := store.Occurrence{Outcome: string(api.OccurrenceCancelled), Reason: "the schedule was paused"}
		if err := s.store.PauseSchedule(ctx, name, paused, now, cancelled); err != nil {
			return err
		}
		if p != nil {
			s.metrics.Occurred(api.OccurrenceCancelled, len(p.waiting))
			p.paused, p.until, p.waiting = paused, now, nil
			s.timetable.lookAt(p, s.nextLook(p))
		}
		s.logger.Info("schedule paused or resumed", "schedule", row.Seq, "paused", paused)
		return nil
	})
	if err != nil {
		return api.Schedule{}, err
	}
	return s.Schedule(ctx, name)
}

// changeSchedule calls do while nothing else happens to a schedule. It is nil for one that can't be
// read.
func (s *Service) changeSchedule(ctx context.Context, name string, do func(*planned, store.Schedule) error) error {
	if err := s.admits(ctx); err != nil {
		return err
	}
	s.timetable.changing.Lock()
	defer s.timetable.changing.Unlock()
	p := s.timetable.find(name)
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	row, err := s.store.Schedule(ctx, name)
	if err != nil {
		return err
	}
	return do(p, row)
}

// RunSchedule starts a run of a schedule now, whatever its times, its state and its other runs
// are. It is an occurrence of its history, and doesn't count for Count.
func (s *Service) RunSchedule(ctx context.Context, name string) (api.Record, error) {
	if err := s.admits(ctx); err != nil {
		return api.Record{}, err
	}
	if _, err := s.store.Schedule(ctx, name); err != nil {
		return api.Record{}, err
	}
	p := s.timetable.find(name)
	if p == nil {
		return api.Record{}, fault.New(fault.Conflict, "the schedule can't be kept").WithHint("look at its problem, and make it again")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.opts.Clock.Now()
	o := store.Occurrence{Schedule: p.seq, Planned: now, Fired: now, Manual: true}
	record, err := s.startOccurrence(ctx, p, o)
	var happened *store.Happened
	if errors.As(err, &happened) {
		return record, fault.Wrap(fault.Conflict, err, "the schedule has an occurrence of this moment, or was removed").WithHint("try again")
	}
	if err == nil {
		s.began(p, o)
	}
	return record, err
}

// mostTimes bounds NextTimes.
const mostTimes = 100

// NextTimes returns the next n times of a schedule, 1 to 100; 0 is 10. They are those that it would
// have if it weren't paused.
func (s *Service) NextTimes(ctx context.Context, name string, n int) (api.ScheduledTimes, error) {
	n, err := timesOf(n)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	row, err := s.store.Schedule(ctx, name)
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
	if now := s.opts.Clock.Now().Add(-plan.Delay(name)); now.After(after) {
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

// PreviewTimes checks the times of a specification and returns the next n of them, as NextTimes
// does. Its unit isn't looked at.
func (s *Service) PreviewTimes(spec api.ScheduleSpec, n int) (api.ScheduledTimes, error) {
	n, err := timesOf(n)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	now := s.opts.Clock.Now()
	plan, err := schedule.Read(spec, now)
	if err != nil {
		return api.ScheduledTimes{}, err
	}
	if plan.Count > 0 {
		n = min(n, plan.Count)
	}
	return timesAfter(plan, now, n), nil
}

// timesAfter returns the next n times of a plan.
func timesAfter(plan *schedule.Plan, after time.Time, n int) api.ScheduledTimes {
	times := api.ScheduledTimes{Times: []time.Time{}}
	for len(times.Times) < n {
		if after = plan.Next(after); after.IsZero() {
			break
		}
		times.Times = append(times.Times, after)
	}
	return times
}

// Occurrences returns the history of a schedule, the youngest first, paged as Schedules is.
func (s *Service) Occurrences(ctx context.Context, name string, before int64, limit int) (api.OccurrencePage, error) {
	limit, err := limitOf(limit)
	if err != nil {
		return api.OccurrencePage{}, err
	}
	row, err := s.store.Schedule(ctx, name)
	if err != nil {
		return api.OccurrencePage{}, err
	}
	rows, err := s.store.Occurrences(ctx, row.Seq, before, limit)
	page := api.OccurrencePage{Occurrences: make([]api.Occurrence, 0, len(rows))}
	for _, o := range rows {
		page.Occurrences = append(page.Occurrences, shownOccurrence(o))
	}
	if len(rows) == limit {
		page.Next = &rows[limit-1].Seq
	}
	return page, err
}
